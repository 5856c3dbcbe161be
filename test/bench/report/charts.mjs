import { shown } from './table.mjs';

const WIDTH = 820;
const LABELS = 345;
const VALUES = 80;
const ROW = 26;
const TOP = 44;

const STYLE =
  'text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.ours{fill:#0969da}.other{fill:#afb8c1}' +
  '@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ours{fill:#58a6ff}.other{fill:#6e7681}}';

/** Horizontal bars, ours in colour; readable on light and on dark ground. */
export function barChart({ title, unit, bars }) {
  const most = Math.max(...bars.map(({ value }) => value));
  const rows = bars.map(({ label, value, ours }, index) => {
    const y = TOP + index * ROW;
    const width = Math.max(1, (value / most) * (WIDTH - LABELS - VALUES));
    return [
      `  <text x="${LABELS - 8}" y="${y + 14}" text-anchor="end">${escaped(label)}</text>`,
      `  <rect class="${ours ? 'ours' : 'other'}" x="${LABELS}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 8}" rx="2"/>`,
      `  <text x="${(LABELS + width + 6).toFixed(1)}" y="${y + 14}">${shown(value)} ${escaped(unit)}</text>`,
    ].join('\n');
  });
  const height = TOP + bars.length * ROW + 4;
  const label = bars.map(({ label: name, value }) => `${name} ${shown(value)} ${unit}`).join(', ');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${escaped(`${title}: ${label}`)}">
  <style>${STYLE}</style>
  <text class="title" x="8" y="22">${escaped(title)}</text>
${rows.join('\n')}
</svg>
`;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
