import Table from 'cli-table3';
import type { Command } from 'commander';
import type { Operations } from './local-service.js';

/** Runs operations for a command, and prints its result. */
export type RunWork = (work: (operations: Operations) => Promise<CommandResult>) => Promise<void>;

/** The result of a command, printed as text, or as JSON with `--json`. */
export interface CommandResult {
  json: object;
  /** By default the fields of `json`, and lists as tables. */
  text?: string;
  /** Reported after the result is printed; the command then exits with 1. */
  failure?: Error | undefined;
}

/** Prints a result to standard output. @throws its failure */
export async function print({ json, text = asText(json), failure }: CommandResult, asJson: boolean): Promise<void> {
  await write(`${asJson ? JSON.stringify(json) : text.replace(/\n$/, '')}\n`);
  if (failure) throw failure;
}

/** Prints a response to standard output as it arrives, and a line break after JSON. */
export async function printBody(body: ReadableStream<Uint8Array>): Promise<void> {
  let last = '';
  for await (const part of body.pipeThrough(new TextDecoderStream())) {
    if (!(await write(part))) return;
    last = part;
  }
  if (!last.endsWith('\n')) await write('\n');
}

/** @returns false when the reader has stopped early, such as `head`, which is no error */
async function write(part: string): Promise<boolean> {
  const { stdout } = process;
  const reported = (): void => undefined;
  stdout.once('error', reported);
  const error = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) => stdout.write(part, resolve));
  if (!error) stdout.off('error', reported);
  else if (error.code !== 'EPIPE') throw error;
  return !error;
}

/** Refuses `--json` beside an option that prints another format: commander compares the options of one command only. */
export function refuseJson(program: Command, option: string): void {
  if (program.opts()['json'] === true) program.error(`option '${option}' cannot be used with option '--json'`);
}

/**
 * Formats a result for a terminal: a list of objects as a table, an object as a labelled value per line with its objects and
 * lists of objects below. Null is shown as a dash.
 */
export function asText(result: object): string {
  if (Array.isArray(result)) return tableOf(result);
  const fields = Object.entries(result).filter(([, value]) => value !== undefined);
  const simple = fields.filter(([, value]) => !isNested(value));
  const nested = fields.flatMap(([name, value]) => (isNested(value) ? [`${heading(name)}\n${asText(value)}`] : []));
  return [aligned(simple.map(([name, value]) => [wordsOf(name), cell(value)])), ...nested].join('\n\n');
}

function tableOf(rows: readonly object[]): string {
  if (!rows[0]) return 'none';
  return aligned([Object.keys(rows[0]).map(heading), ...rows.map((row) => Object.values(row).map(cell))]);
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Date) && !areTexts(value);
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');
}

function cell(value: unknown): string {
  if (value === null) return '-';
  if (areTexts(value)) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value).replace(/^"|"$/g, '');
}

/** `monthlyLimit` as `monthly limit`. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function heading(name: string): string {
  return wordsOf(name).toUpperCase();
}

/** Without lines between the cells, so that programs can read the columns too. */
const NO_LINES: NonNullable<Table.TableConstructorOptions['chars']> = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '', mid: '', 'mid-mid': '', 'left-mid': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '', 'right-mid': '' },
  ...{ left: '', middle: '  ', right: '' },
};

function aligned(rows: readonly string[][]): string {
  const table = new Table({ chars: NO_LINES, style: { 'padding-left': 0, 'padding-right': 0, border: [] } });
  table.push(...rows);
  const lines = table.toString().split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}
