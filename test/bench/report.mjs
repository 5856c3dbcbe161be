import { arch, cpus, platform, release, totalmem } from 'node:os';

/** Prints a part as it was measured. */
export function print(report) {
  process.stdout.write(`\n== ${report.title} ==\n`);
  for (const table of [...report.tables, goalTable(report.goals)]) process.stdout.write(`\n${textTable(table)}\n`);
  process.stdout.write('\n');
}

/** Prints the machine and the release of Node.js, without which no figure can be compared. */
export function printConditions(runs) {
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GB of memory`;
  const model = cpus()[0]?.model.trim() || 'processor';
  const machine = `${cpus().length} × ${model}, ${memory}, ${platform()} ${release()} ${arch()}`;
  process.stdout.write(`${machine}, Node ${process.versions.node}, ${runs} runs\n`);
}

/** Formats numbers of any size with their significant digits. */
function shown(value) {
  if (typeof value !== 'number') return String(value);
  if (Number.isNaN(value)) return '–';
  if (Number.isInteger(value) || Math.abs(value) >= 100) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

function textTable({ title, columns, rows }) {
  const cells = [columns, ...rows.map((row) => row.map(shown))];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  ');
  return [title, ...cells.map(line)].join('\n');
}

function goalTable(goals) {
  return {
    title: 'Goals',
    columns: ['goal', 'bound', 'measured', ''],
    rows: goals.map(({ what, bound, value, unit, result }) => [
      what,
      bound,
      Number.isNaN(value) ? shown(value) : `${shown(value)}${unit}`,
      result,
    ]),
  };
}
