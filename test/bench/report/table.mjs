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

export function markdownTable({ columns, rows }) {
  const line = (row) => `| ${row.map((cell) => shown(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  const rule = `| ${columns.map((_, column) => (column === 0 ? '---' : '---:')).join(' | ')} |`;
  return [line(columns), rule, ...rows.map(line)].join('\n');
}

/** @param others the same goals as measured with other release lines of Node.js, each with its name */
export function goalTable(goals, others = []) {
  const valueOf = ({ value, unit }) => `${shown(value)}${unit}`;
  const valueIn = (column, { what }) => {
    const same = column.goals.find((goal) => goal.what === what);
    return same ? `${valueOf(same)}${same.met ? '' : ' (missed)'}` : '';
  };
  return {
    title: 'Goals',
    columns: ['goal', 'bound', 'measured', '', ...others.map(({ name }) => name)],
    rows: goals.map((goal) => [
      goal.what,
      goal.bound,
      valueOf(goal),
      goal.met ? 'met' : 'missed',
      ...others.map((column) => valueIn(column, goal)),
    ]),
  };
}

export function profileTable(profile) {
  return {
    title: 'Where the time goes',
    columns: ['', 'share', 'ms'],
    rows: profile.map(({ where, share, ms }) => [where, `${(share * 100).toFixed(0)} %`, ms.toFixed(0)]),
  };
}
