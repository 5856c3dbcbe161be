/** Rows under a heading in columns as wide as their widest cell; null is shown as a dash. */
export function table(heading: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const lines = [heading, ...rows.map((row) => row.map((cell) => String(cell ?? '-')))];
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => width(line[column] ?? ''))));
  return lines
    .map((line) =>
      line
        .map((cell, column) => pad(cell, widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A line per fact, the values below each other. */
export function facts(pairs: readonly (readonly [string, string | number | null])[]): string {
  const widest = Math.max(...pairs.map(([label]) => width(label)));
  return pairs.map(([label, value]) => `${pad(label, widest)}  ${value ?? '-'}`).join('\n');
}

function pad(cell: string, columnWidth: number): string {
  return cell + ' '.repeat(columnWidth - width(cell));
}

function width(text: string): number {
  return Array.from(text).length;
}
