/** Formats numbers of any size with their significant digits. */
export function shown(value) {
  if (typeof value !== 'number') return String(value);
  if (Number.isNaN(value)) return '–';
  if (Number.isInteger(value) || Math.abs(value) >= 100) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

export function textTable({ title, columns, rows }) {
  const cells = [columns, ...rows.map((row) => row.map(shown))];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  ');
  return [title, ...cells.map(line)].join('\n');
}

export function goalTable(goals) {
  return {
    title: 'Goals',
    columns: ['goal', 'bound', 'measured', ''],
    rows: goals.map(({ what, bound, value, unit, met }) => [
      what,
      bound,
      `${shown(value)}${unit}`,
      met ? 'met' : 'missed',
    ]),
  };
}
