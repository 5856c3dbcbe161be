import type { AdminServices } from './admin-services.js';

/** Runs the work of a command with the services, and prints its result. */
export type RunWork = (work: (services: AdminServices) => Promise<CommandResult>) => Promise<void>;

/** The result of a command, printed as text, or as JSON with `--json`. */
export interface CommandResult {
  json: unknown;
  text: string;
  /** Reported after the result is printed; the command then exits with 1. */
  failure?: Error | undefined;
}

/** Ends a command before its work is done, because of a signal. */
export class CommandStopped extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
  ) {
    super(message);
    this.name = 'CommandStopped';
  }
}

/** Formats rows in aligned columns. Null is shown as a dash. */
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

/** Formats one labelled value per line, with aligned values. Null is shown as a dash. */
export function labelled(pairs: readonly (readonly [string, string | number | null])[]): string {
  const widest = Math.max(...pairs.map(([label]) => width(label)));
  return pairs.map(([label, value]) => `${pad(label, widest)}  ${value ?? '-'}`).join('\n');
}

function pad(cell: string, columnWidth: number): string {
  return cell + ' '.repeat(columnWidth - width(cell));
}

function width(text: string): number {
  return Array.from(text).length;
}
