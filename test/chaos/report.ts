import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT } from './harness/program.js';
import type { PartReport } from './chaos-run.js';

const BEGIN = '<!-- What follows is written by `npm run chaos`. -->';
const END = '<!-- What comes before is written by `npm run chaos`. -->';

/** A part as a table for a terminal. */
export function printed({ title, columns, rows, promised }: PartReport): string {
  const seen = table([columns, ...rows].filter((row) => row.length > 0));
  const held = table(promised.map((one) => [one.held ? 'kept' : 'BROKEN', one.what, one.seen]));
  return [`\n== ${title} ==`, seen, held].filter(Boolean).join('\n\n');
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

/** Puts the reports into docs/reliability.md, between their marks; the rest of the page is written by hand. */
export async function writeReports(reports: readonly PartReport[], facts: string): Promise<void> {
  const file = join(PROJECT, 'docs/reliability.md');
  const page = await readFile(file, 'utf8');
  const [before = page] = page.split(BEGIN);
  const after = page.split(END)[1] ?? '\n';
  const body = [facts, ...reports.map(section)].join('\n\n');
  await writeFile(file, `${before.trimEnd()}\n\n${BEGIN}\n\n${body}\n\n${END}${after}`);
}

function section({ title, text, columns, rows, promised }: PartReport): string {
  const tables = [
    markdown(
      ['promise', 'seen', ''],
      promised.map((one) => [one.what, one.seen, one.held ? 'kept' : '**broken**']),
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
