import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { BENCH, PROJECT } from '../processes.mjs';
import { barChart } from './charts.mjs';
import { goalTable, markdownTable, profileTable, textTable } from './table.mjs';

const LIMITS = `
- Everything ran on one machine: the service, the fake YouTube, PostgreSQL, Redis and the load share its processors. Ratios within a run
  are more meaningful than single figures; differences below a fifth can be noise.
- The parts were measured at different times, and the machine is shared with others: its speed differed by up to a factor of two
  between them. Compare figures of one part only.
- Cold calls are limited by the latency of YouTube: at 16 concurrent requests and two requests per video, 100 videos take at least 13
  round trips after they are listed. The rest is CPU time.
- The body of a repeated cached call is stored and written again ([decision](decisions/0006-one-cache-entry.md)). The parts with cached
  calls repeat one call, so that almost all of their bodies are stored ones.
- Memory per video is derived from the process's peak, which grows in steps: at a few hundredths of a megabyte the ratio of two such
  figures is noise.
- The best library at 16 concurrent requests reads no channel page, feed or list of Shorts, and stops at objects in memory.
- CPU and memory are those of the measured process, without PostgreSQL and Redis.
- The budgets of the simulated day are reports of users, which differ. It shows how the service learns budgets that it does not know; no
  figure of it is one of YouTube.
- The fake YouTube responds after a fixed time and from the same machine. YouTube is slower, farther away and less even.
`;

/** Prints a part as it was measured. */
export function print(report) {
  process.stdout.write(`\n== ${report.title} ==\n\n${report.text}\n`);
  for (const table of tablesOf(report)) process.stdout.write(`\n${textTable(table)}\n`);
  for (const note of report.notes ?? []) process.stdout.write(`\n${note}\n`);
  process.stdout.write('\n');
}

const FOLDER = join(PROJECT, 'docs/performance');
const FIGURES = join(FOLDER, 'figures.json');

/**
 * Writes docs/performance.md, its charts and the figures as JSON. The parts that were not measured remain as the last
 * figures have them.
 */
export async function write(measured, runs) {
  await mkdir(FOLDER, { recursive: true });
  const now = conditions(runs);
  const reports = measured.map((report) => ({ ...report, measured: now }));
  await writeFormatted(FIGURES, JSON.stringify(await withEarlier(reports, FIGURES)));
  await render();
}

/**
 * Writes the goals that were measured as a column for this release line of Node.js beside the other figures. The parts that
 * were not measured remain as the last column has them.
 */
export async function writeColumn(measured, runs) {
  const file = join(FOLDER, `node-${process.versions.node.split('.')[0]}.json`);
  const now = conditions(runs);
  const reports = measured
    .filter(({ goals }) => goals.length > 0)
    .map(({ title, goals }) => ({ title, goals, measured: now }));
  if (reports.length === 0) return;
  await writeFormatted(file, JSON.stringify(await withEarlier(reports, file)));
  await render();
}

/** Writes docs/performance.md and its charts from the figures. */
async function render() {
  const reports = await readFigures(FIGURES);
  const names = await readdir(FOLDER);
  for (const name of names.filter((one) => one.endsWith('.svg'))) await rm(join(FOLDER, name));
  for (const { file, ...chart } of reports.flatMap(({ charts }) => charts)) {
    await writeFile(join(FOLDER, file), barChart(chart));
  }
  const columns = await Promise.all(
    names.filter((name) => /^node-\d+\.json$/.test(name)).map((name) => readColumn(join(FOLDER, name))),
  );
  const sections = reports.map(sectionOf);
  const text = `# Performance

Written by \`npm run bench\` (\`test/bench/\`), which compares the service with the alternatives that a user could write. Figures are
medians of the runs that each part states, of fewer where a run is long. Ratios are computed within one run.

${await environment(reports)}

## Repeating the measurements

\`\`\`
npm ci
npm run bench                          # everything, under 20 minutes, on an idle machine
npm run bench -- --only cold,cached    # parts of it; also small, mixed, jobs, growth, redis, start, survival
npm run bench -- --quick               # a functional check without valid figures
npm run bench -- --column              # with another release line of Node.js: adds a column to the goals
\`\`\`

It needs only Node and the npm registry; Redis is measured where \`redis-server\` or \`valkey-server\` is installed. All
requests go to the fake YouTube on the same machine.

## Goals

${columns.map((column) => `${columnText(column)}\n\n`).join('')}${markdownTable(goalTable(goalsOf(reports), columns))}

${sections.join('\n\n')}

## Limitations
${LIMITS}`;
  await writeFormatted(join(PROJECT, 'docs/performance.md'), text);
}

function conditions(runs) {
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GB of memory`;
  const model = cpus()[0]?.model.trim() || 'processor';
  const machine = `${cpus().length} × ${model}, ${memory}, ${platform()} ${release()} ${arch()}`;
  return { machine, node: process.versions.node, date: new Date().toISOString().slice(0, 10), runs };
}

const measuredText = ({ measured: { node, date, runs } }) =>
  `measured with Node ${node} on ${date}${runs === undefined ? '' : `, ${runs} runs`}.`;

function goalsOf(reports) {
  return reports.flatMap((report) => report.goals.map((each) => ({ ...each, what: `${report.title}: ${each.what}` })));
}

async function readColumn(file) {
  const reports = await readFigures(file);
  return { name: `Node ${reports[0].measured.node.split('.')[0]}`, reports, goals: goalsOf(reports) };
}

/** When each part of a column was measured. */
function columnText({ name, reports }) {
  const titles = new Map();
  for (const report of reports) {
    const text = measuredText(report);
    titles.set(text, [...(titles.get(text) ?? []), `"${report.title}"`]);
  }
  const parts = [...titles].map(([text, measured]) => `- ${measured.join(', ')}: ${text}`);
  return `The column ${name}:\n\n${parts.join('\n')}`;
}

async function readFigures(file) {
  return JSON.parse(await readFile(file, 'utf8').catch(() => '[]'));
}

/** Each part as measured now or else before; new parts come last. */
async function withEarlier(measured, file) {
  const earlier = await readFigures(file);
  const now = new Map(measured.map((report) => [report.title, report]));
  const known = new Set(earlier.map(({ title }) => title));
  return [
    ...earlier.map((report) => now.get(report.title) ?? report),
    ...measured.filter(({ title }) => !known.has(title)),
  ];
}

function tablesOf({ tables, goals, profile, profileOf }) {
  const spent = profile
    ? [{ ...profileTable(profile), title: `Where the time goes${profileOf ? ` (${profileOf})` : ''}` }]
    : [];
  return [...tables, ...(goals.length > 0 ? [goalTable(goals)] : []), ...spent];
}

function sectionOf(report) {
  const charts = report.charts.map(({ file, title }) => `![${title}](performance/${file})`);
  const tables = tablesOf({ ...report, goals: [] }).map((table) => `**${table.title}**\n\n${markdownTable(table)}`);
  const conditionsText = `This part was ${measuredText(report)}`;
  return [`## ${report.title}`, report.text, ...charts, ...tables, ...(report.notes ?? []), conditionsText].join(
    '\n\n',
  );
}

async function environment(reports) {
  const { dependencies } = JSON.parse(await readFile(join(BENCH, 'package.json'), 'utf8'));
  const beside = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`);
  const machines = new Set(reports.map(({ measured }) => measured.machine));
  return [...machines, `Compared with: ${beside.join(', ')}`].map((line) => `- ${line}`).join('\n');
}

/** As the project's own formatter would have it, so that its check passes. */
async function writeFormatted(path, text) {
  const prettier = await import('prettier');
  const options = await prettier.resolveConfig(path);
  await writeFile(path, await prettier.format(text, { ...options, filepath: path }));
}
