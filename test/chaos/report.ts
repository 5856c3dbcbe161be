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

/**
 * Writes the reports between the two markers of docs/reliability.md. Sections of parts that were not run stay as they are,
 * and those that were run name their run.
 */
export async function writeReports(reports: readonly PartReport[], run: string): Promise<void> {
  const file = join(PROJECT, 'docs/reliability.md');
  await writeFile(file, withReports(await readFile(file, 'utf8'), reports, run));
}

export function withReports(page: string, reports: readonly PartReport[], run: string): string {
  const [before = page, rest = ''] = page.split(BEGIN);
  const [written = '', after = '\n'] = rest.split(END);
  const [facts = '', ...sections] = written.trim().split(/\n\n(?=### )/);
  const byTitle = new Map(sections.map((text) => [text.split('\n', 1)[0], text]));
  const isWhole = sections.every((text) => reports.some(({ title }) => text.startsWith(`### ${title}\n`)));
  for (const report of reports)
    byTitle.set(`### ${report.title}`, section(report, isWhole ? '' : ` In a run of its own: ${run}`));
  const body = [isWhole ? run : facts, ...byTitle.values()].join('\n\n');
  return `${before.trimEnd()}\n\n${BEGIN}\n\n${body}\n\n${END}${after}`;
}

function section({ title, text, columns, rows, checks }: PartReport, run: string): string {
  const tables = [
    markdown(
      ['check', 'observed', ''],
      checks.map(({ name, observed, passed }) => [name, observed, passed ? 'passed' : '**failed**']),
    ),
    ...(rows.length > 0 ? [markdown(columns, rows)] : []),
  ];
  return [`### ${title}`, `${text}${run}`, ...tables].join('\n\n');
}

function markdown(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
