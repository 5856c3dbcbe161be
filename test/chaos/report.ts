import type { PartReport } from './chaos-run.js';

/** A part's report with its title. */
export interface TitledReport extends PartReport {
  title: string;
}

/** Formats a part's report as tables for a terminal. */
export function printed({ title, columns, rows, checks }: TitledReport): string {
  const results = table([columns, ...rows].filter((row) => row.length > 0));
  const outcomes = table(checks.map(({ name, observed, passed }) => [passed ? 'passed' : 'FAILED', name, observed]));
  return [`\n== ${title} ==`, results, outcomes].filter(Boolean).join('\n\n');
}

function table(rows: readonly (readonly (string | number)[])[]): string {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => String(row[column] ?? '').length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => String(cell).padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The passed checks of each part, as the table of docs/reliability.md. */
export function summary(reports: readonly TitledReport[]): string {
  const rows = reports.map(({ title, checks }) => {
    const passed = checks.filter((check) => check.passed).length;
    return `| ${title} | ${passed} of ${checks.length} |`;
  });
  return ['| part | checks passed |', '| --- | --- |', ...rows].join('\n');
}
