import type { AnsweredPanel } from './dashboard.js';

const COLUMNS = 4;
const [WIDTH, HEIGHT, GAP] = [300, 170, 12];
/** The plot within a panel. */
const PLOT = { left: 44, top: 24, width: 250, height: 84 };
const ROW_TITLE = 30;
const LEGEND_MAX = 8;
const LEGEND_LETTERS = 24;
const COLORS = ['#1f77b4', '#d95f02', '#2ca02c', '#c03a3a', '#7b52ab', '#8c6d31', '#d6569b', '#4d4d4d', '#17a2b8'];

/** Draws the panels as small line charts, one beside the other, each with its largest value and a legend. */
export function drawPanels(panels: readonly AnsweredPanel[], range: { start: number; end: number }): string {
  const rows = new Set(panels.map(({ row }) => row));
  const parts: string[] = [];
  let top = GAP;
  for (const row of rows) {
    const members = panels.filter((panel) => panel.row === row);
    parts.push(`<text x="${GAP}" y="${top + 18}" class="row">${escaped(row)}</text>`);
    top += ROW_TITLE;
    for (const [index, panel] of members.entries()) {
      const x = GAP + (index % COLUMNS) * (WIDTH + GAP);
      const y = top + Math.floor(index / COLUMNS) * (HEIGHT + GAP);
      parts.push(`<g transform="translate(${x} ${y})">${drawPanel(panel, range)}</g>`);
    }
    top += Math.ceil(members.length / COLUMNS) * (HEIGHT + GAP);
  }
  const width = GAP + COLUMNS * (WIDTH + GAP);
  const style =
    'text{font:9px sans-serif;fill:#333}.row{font:bold 15px sans-serif}.title{font:bold 11px sans-serif}' +
    '.grid{stroke:#ddd}polyline{fill:none;stroke-width:1.3}';
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}">\n` +
    `<style>${style}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n${parts.join('\n')}\n</svg>\n`
  );
}

function drawPanel({ title, unit, series }: AnsweredPanel, range: { start: number; end: number }): string {
  const values = series.flatMap(({ samples }) => samples.map(({ value }) => value)).filter(Number.isFinite);
  const max = Math.max(...values, 0) || 1;
  const { left, top, width, height } = PLOT;
  const y = (value: number): number => top + height - (value / max) * height;
  const x = (atSeconds: number): number => left + ((atSeconds - range.start) / (range.end - range.start)) * width;
  const axis = [0, max / 2, max].map(
    (value) =>
      `<path class="grid" d="M${left} ${y(value)}h${width}"/>` +
      `<text x="${left - 4}" y="${y(value) + 3}" text-anchor="end">${withUnit(value, unit)}</text>`,
  );
  const largestFirst = [...series].sort((one, other) => largest(other) - largest(one));
  const lines = largestFirst.map(({ samples }, index) => {
    const points = samples
      .filter(({ value }) => Number.isFinite(value))
      .map(({ atSeconds, value }) => `${x(atSeconds).toFixed(0)},${y(value).toFixed(0)}`);
    return `<polyline stroke="${colorOf(index)}" points="${points.join(' ')}"/>`;
  });
  const names = largestFirst.slice(0, LEGEND_MAX).map(({ name }, index) => {
    const [at, line] = [left + (index % 2) * (width / 2), top + height + 14 + Math.floor(index / 2) * 12];
    const shown = name.length > LEGEND_LETTERS ? `${name.slice(0, LEGEND_LETTERS - 1)}…` : name;
    return (
      `<rect x="${at}" y="${line - 6}" width="8" height="4" fill="${colorOf(index)}"/>` +
      `<text x="${at + 11}" y="${line}">${escaped(shown)}</text>`
    );
  });
  return `<text class="title" x="4" y="14">${escaped(title)}</text>${[...axis, ...lines.reverse(), ...names].join('')}`;
}

function largest({ samples }: AnsweredPanel['series'][number]): number {
  return Math.max(0, ...samples.map(({ value }) => value).filter(Number.isFinite));
}

function colorOf(index: number): string {
  return COLORS[index % COLORS.length] ?? '#000';
}

function withUnit(value: number, unit: string): string {
  if (unit === 'bytes') return value >= 1e9 ? `${short(value / 1e9)} GB` : `${short(value / 1e6)} MB`;
  if (unit === 's') return value > 0 && value < 1 ? `${short(value * 1_000)} ms` : `${short(value)} s`;
  if (unit === 'percentunit') return `${short(value * 100)} %`;
  return short(value) + (unit === 'reqps' || unit === 'ops' ? '/s' : '');
}

function short(value: number): string {
  return value >= 1_000 ? value.toFixed(0) : String(Number(value.toPrecision(2)));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
