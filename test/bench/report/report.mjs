import { mkdir, writeFile } from 'node:fs/promises';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { PROJECT } from '../processes.mjs';
import { barChart } from './charts.mjs';
import { goalTable, textTable } from './table.mjs';

const CHARTS = join(PROJECT, 'docs/performance');

/** Prints a part as it was measured. */
export function print(report) {
  process.stdout.write(`\n== ${report.title} ==\n\n${report.text}\n`);
  for (const table of tablesOf(report)) process.stdout.write(`\n${textTable(table)}\n`);
  for (const note of report.notes ?? []) process.stdout.write(`\n${note}\n`);
  process.stdout.write('\n');
}

/** Prints the machine and the release of Node.js, without which no figure can be compared. */
export function printConditions(runs) {
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GB of memory`;
  const model = cpus()[0]?.model.trim() || 'processor';
  const machine = `${cpus().length} × ${model}, ${memory}, ${platform()} ${release()} ${arch()}`;
  process.stdout.write(`${machine}, Node ${process.versions.node}, ${runs} runs\n`);
}

/** Draws the charts of the measured parts into docs/performance. */
export async function drawCharts(reports) {
  await mkdir(CHARTS, { recursive: true });
  for (const { file, ...chart } of reports.flatMap(({ charts }) => charts)) {
    await writeFile(join(CHARTS, file), barChart(chart));
  }
}

function tablesOf({ tables, goals }) {
  return goals.length > 0 ? [...tables, goalTable(goals)] : tables;
}
