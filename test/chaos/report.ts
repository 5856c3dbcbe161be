import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT } from './harness/program.js';
import type { PartReport } from './chaos-run.js';

const BEGIN = '<!-- What follows is written by `npm run chaos`. -->';
const END = '<!-- What comes before is written by `npm run chaos`. -->';

/** A part's report with the heading of its section, by which a later run finds the section. */
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

/**
 * Writes the reports between the two markers of docs/reliability.md, as `withReports` does.
 *
 * @param titles of all parts, in the order of their sections
 * @param run the facts of the run: the release of Node, the seed, the duration
 */
export async function writeReports(
  reports: readonly TitledReport[],
  titles: readonly string[],
  run: string,
): Promise<void> {
  const file = join(PROJECT, 'docs/reliability.md');
  await writeFile(file, withReports(await readFile(file, 'utf8'), reports, titles, run));
}

/**
 * The page with the reports in it. Sections of parts that were not run are unchanged, and those that were run name their
 * run; a section whose title no part has any more is removed.
 */
export function withReports(
  page: string,
  reports: readonly TitledReport[],
  titles: readonly string[],
  run: string,
): string {
  const [before = page, rest = ''] = page.split(BEGIN);
  const [written = '', after = '\n'] = rest.split(END);
  const [facts = '', ...sections] = written.trim().split(/\n\n(?=### )/);
  const unchanged = new Map(
    sections
      .map((text) => [/^### (.*)/.exec(text)?.[1] ?? '', text] as const)
      .filter(([title]) => titles.includes(title) && !reports.some((report) => report.title === title)),
  );
  const isWhole = unchanged.size === 0;
  const body = titles.flatMap((title) => {
    const report = reports.find((one) => one.title === title);
    return report ? section(report, isWhole ? '' : ` In a run of its own: ${run}`) : (unchanged.get(title) ?? []);
  });
  return `${before.trimEnd()}\n\n${BEGIN}\n\n${[isWhole ? run : facts, ...body].join('\n\n')}\n\n${END}${after}`;
}

function section({ title, text, columns, rows, checks }: TitledReport, run: string): string {
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
