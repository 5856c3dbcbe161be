import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT } from './harness/program.js';
import type { PartReport } from './chaos-run.js';

const BEGIN = '<!-- What follows is written by `npm run chaos`. -->';
const END = '<!-- What comes before is written by `npm run chaos`. -->';

/** Formats a part's report as tables for a terminal. */
export function printed({ title, columns, rows, checks }: PartReport): string {
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

/** Writes the reports between the two markers of docs/reliability.md. */
export async function writeReports(reports: readonly PartReport[], facts: string): Promise<void> {
  const file = join(PROJECT, 'docs/reliability.md');
  const page = await readFile(file, 'utf8');
  const [before = page] = page.split(BEGIN);
  const after = page.split(END)[1] ?? '\n';
  const body = [facts, ...reports.map(section)].join('\n\n');
  await writeFile(file, `${before.trimEnd()}\n\n${BEGIN}\n\n${body}\n\n${END}${after}`);
}

function section({ title, text, columns, rows, checks }: PartReport): string {
  const tables = [
    markdown(
      ['check', 'observed', ''],
      checks.map(({ name, observed, passed }) => [name, observed, passed ? 'passed' : '**failed**']),
    ),
    ...(rows.length > 0 ? [markdown(columns, rows)] : []),
  ];
  return [`### ${title}`, text, ...tables].join('\n\n');
}

function markdown(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
