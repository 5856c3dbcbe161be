import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { BENCH, PROJECT } from '../processes.mjs';
import { barChart } from './charts.mjs';
import { goalTable, markdownTable, profileTable, textTable } from './table.mjs';

const LIMITS = `
- All of it ran on one machine: the service, the fake YouTube, PostgreSQL, Redis and the load share its processors, so a
  single figure means little, and a ratio of two figures of the same run means more. Differences under a fifth can be noise.
- Cold calls are limited by the platform's latency first: at 16 requests at a time, two requests a video, a hundred
  videos cannot take less than 13 times the latency after they are listed. What is beyond that is processor time.
- A cached response is written as two parts for each video, the stored text and the JSON between two texts; a bare server
  passes one buffer on. Joining the parts, looking them up in the cache and the guards of the call cost about as much
  CPU time as writing twelve megabytes, and several times that of the three that remain after gzip. Copying them into
  one buffer first was slower.
- Memory per video is derived from the peak of the process, which grows in steps: at some hundredths of a megabyte a video the ratio
  of two such figures is noise.
- The best library at 16 requests at a time requests no channel page, no feed and no Shorts, and stops at objects in memory;
  0.7 of its time is less than the tight script takes.
- CPU and memory are those of the measured process alone: PostgreSQL's and Redis' are not in them.
- The fake YouTube responds after a fixed time and from this machine. The platform is slower, more distant and less regular.
`;

/** Prints a part as it was measured. */
export function print(report) {
  process.stdout.write(`\n== ${report.title} ==\n\n${report.text}\n`);
  for (const table of tablesOf(report)) process.stdout.write(`\n${textTable(table)}\n`);
  for (const note of report.notes ?? []) process.stdout.write(`\n${note}\n`);
  process.stdout.write('\n');
}

/** Writes docs/performance.md, its charts and the figures as JSON. */
export async function write(reports, runs) {
  const folder = join(PROJECT, 'docs/performance');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const { file, ...chart } of reports.flatMap(({ charts }) => charts)) {
    await writeFile(join(folder, file), barChart(chart));
  }
  await writeFormatted(join(folder, 'figures.json'), JSON.stringify(reports));
  const goals = reports.flatMap((report) =>
    report.goals.map((each) => ({ ...each, what: `${report.title}: ${each.what}` })),
  );
  const sections = reports.map(sectionOf);
  const text = `# Performance

Written by \`npm run bench\` (\`bench/\`), which measures the service beside what a user would write instead. Every figure is the
median of ${runs} runs (fewer where a run is long), every ratio one of the same run.

${await environment()}

## How to repeat it

\`\`\`
npm ci
npm run bench                          # all of it, under 15 minutes, on a machine with nothing else to do
npm run bench -- --only cold,cached    # some of it; also small, mixed, growth, redis, start
npm run bench -- --quick               # whether it works; no figures to quote
\`\`\`

It needs nothing but Node and the registry; Redis is measured where \`redis-server\` or \`valkey-server\` is installed. The
fake YouTube serves every request; nothing leaves the machine.

## What was aimed at

${markdownTable(goalTable(goals))}

${sections.join('\n\n')}

## What limits it
${LIMITS}`;
  await writeFormatted(join(PROJECT, 'docs/performance.md'), text);
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
  return [`## ${report.title}`, report.text, ...charts, ...tables, ...(report.notes ?? [])].join('\n\n');
}

async function environment() {
  const { dependencies } = JSON.parse(await readFile(join(BENCH, 'package.json'), 'utf8'));
  const beside = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`);
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GB of memory`;
  const [processor] = cpus();
  const model = processor?.model.trim() || 'processor';
  return (
    `- ${cpus().length} × ${model}, ${memory}, ${platform()} ${release()} ${arch()}\n` +
    `- Node ${process.versions.node}, ${new Date().toISOString().slice(0, 10)}\n- Beside it: ${beside.join(', ')}`
  );
}

/** As the project's own formatter would have it, so that its check passes. */
async function writeFormatted(path, text) {
  const prettier = await import('prettier');
  const options = await prettier.resolveConfig(path);
  await writeFile(path, await prettier.format(text, { ...options, filepath: path }));
}
