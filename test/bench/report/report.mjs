import { arch, cpus, platform, release, totalmem } from 'node:os';
import { goalTable, textTable } from './table.mjs';

/** Prints a part as it was measured. */
export function print(report) {
  process.stdout.write(`\n== ${report.title} ==\n`);
  for (const table of tablesOf(report)) process.stdout.write(`\n${textTable(table)}\n`);
  process.stdout.write('\n');
}

/** Prints the machine and the release of Node.js, without which no figure can be compared. */
export function printConditions(runs) {
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GB of memory`;
  const model = cpus()[0]?.model.trim() || 'processor';
  const machine = `${cpus().length} × ${model}, ${memory}, ${platform()} ${release()} ${arch()}`;
  process.stdout.write(`${machine}, Node ${process.versions.node}, ${runs} runs\n`);
}

function tablesOf({ tables, goals }) {
  return goals.length > 0 ? [...tables, goalTable(goals)] : tables;
}
