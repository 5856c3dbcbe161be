import { parseArgs } from 'node:util';
import type { FakeYoutubeOptions } from './fake-youtube.js';
import { ALL_FAULT_KINDS, MATCHABLE_KINDS } from './faults/fault-registry.js';
import { readChanges, readFaultFlag, UnreadableError } from './settings.js';

export const HELP = `Usage: npm run fake-youtube -- [options]

  --port N                 default: any free one
  --seed N                 seed of the faults' random numbers
  --settings JSON          as POST /fake-youtube/faults accepts, e.g. {"latencyMs":50,"budgets":{}}
  --fault KIND[=RATE][@REQUESTS]   repeatable, e.g. --fault 429=0.1@player
                           kinds: ${ALL_FAULT_KINDS.join(' ')}
                           requests: ${MATCHABLE_KINDS.join(' ')}
  --help
`;

/**
 * Reads the arguments of the command.
 *
 * @returns undefined for --help
 * @throws UnreadableError with one line
 */
export function readCommandLine(args: readonly string[]): FakeYoutubeOptions | undefined {
  const { help, port = '0', seed = '1', settings = '{}', fault = [] } = parse(args);
  if (help) return undefined;
  const changes = readChanges(settings);
  return {
    port: wholeNumber('--port', port, 65_535),
    seed: wholeNumber('--seed', seed, 4_294_967_295),
    ...changes.settings,
    faults: [...(changes.faults ?? []), ...fault.map(readFaultFlag)],
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const options = {
    port: text,
    seed: text,
    settings: text,
    fault: { ...text, multiple: true },
    help: { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UnreadableError(error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error));
  }
}

function wholeNumber(name: string, text: string, max: number): number {
  const number = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number <= max)) throw new UnreadableError(`${name} must be a whole number from 0 to ${max}, not ${text}`);
  return number;
}
