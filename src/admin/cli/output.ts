import Table from 'cli-table3';
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

type Rows = readonly (readonly (string | number | null)[])[];

/** Formats rows in aligned columns. Null is shown as a dash. */
export function table(heading: readonly string[], rows: Rows): string {
  return aligned([heading, ...rows]);
}

/** Formats one labelled value per line, with aligned values. Null is shown as a dash. */
export function labelled(pairs: Rows): string {
  return aligned(pairs);
}

/** Without lines between the cells, so that programs can read the columns too. */
const NO_LINES: NonNullable<Table.TableConstructorOptions['chars']> = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '', mid: '', 'mid-mid': '', 'left-mid': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '', 'right-mid': '' },
  ...{ left: '', middle: '  ', right: '' },
};

function aligned(rows: Rows): string {
  const style = { 'padding-left': 0, 'padding-right': 0, border: [] };
  const cells = new Table({ chars: NO_LINES, style });
  cells.push(...rows.map((row) => row.map((cell) => cell ?? '-')));
  return cells
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
