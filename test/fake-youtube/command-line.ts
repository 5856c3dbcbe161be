import { parseArgs } from 'node:util';
import { type BudgetSettings, REPORTED_BUDGETS } from './budgets.js';
import { PLAYLIST_SHAPES } from './calls/playlist-page.js';
import { CLIENTS } from './catalogue/model.js';
import { ALL_FAULT_KINDS } from './faults/fault-registry.js';
import { MATCHABLE_KINDS } from './faults/match.js';
import { readBudgetFlag, readFaultFlag, UnreadableError } from './faults/read-changes.js';
import type { FakeYoutubeOptions } from './fake-youtube.js';

export const HELP = `Usage: npm run fake-youtube -- [options]

  --port N                 default: any free one
  --latency-ms N           minimum latency of every response
  --playlist-shape SHAPE   ${PLAYLIST_SHAPES.join(' or ')}; default new
  --ignore-fields CLIENT   ignore $fields of this client (${CLIENTS.join(', ')}); repeatable
  --consent                send requests without the consent cookie to the consent page
  --visitor-data           answer player requests without issued visitor data with a bot check
  --budgets                limit the requests of each address, as is reported of the platform
  --player-budget B/M      player requests of an address: B at once and M per minute; default 300/5
  --text-budget B/M        likewise caption requests; default 60/12
  --block-seconds N        how long an address above a budget is refused; default 1800 and 300
  --bad-share SHARE        share of addresses that are always refused, from 0 to 1
  --time-scale N           budgets and blocks pass N times as fast as real time
  --seed N                 seed of the faults' random numbers
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
  const values = parse(args);
  if (values.help) return undefined;
  const shape = PLAYLIST_SHAPES.find((known) => known === values['playlist-shape']);
  if (values['playlist-shape'] !== undefined && !shape) {
    throw new UnreadableError(`--playlist-shape must be one of ${PLAYLIST_SHAPES.join(', ')}`);
  }
  return {
    port: wholeNumber('--port', values.port ?? '0', 65_535),
    latencyMs: wholeNumber('--latency-ms', values['latency-ms'] ?? '0', 3_600_000),
    seed: wholeNumber('--seed', values.seed ?? '1', 4_294_967_295),
    consentRequired: values.consent ?? false,
    visitorDataRequired: values['visitor-data'] ?? false,
    budgets: budgetsOf(values),
    timeScale: wholeNumber('--time-scale', values['time-scale'] ?? '1', 100_000),
    faults: (values.fault ?? []).map(readFaultFlag),
    fieldsIgnored: (values['ignore-fields'] ?? []).map(client),
    ...(shape && { playlistShape: shape }),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        port: { type: 'string' },
        'latency-ms': { type: 'string' },
        'playlist-shape': { type: 'string' },
        'ignore-fields': { type: 'string', multiple: true },
        consent: { type: 'boolean' },
        'visitor-data': { type: 'boolean' },
        budgets: { type: 'boolean' },
        'player-budget': { type: 'string' },
        'text-budget': { type: 'string' },
        'block-seconds': { type: 'string' },
        'bad-share': { type: 'string' },
        'time-scale': { type: 'string' },
        seed: { type: 'string' },
        fault: { type: 'string', multiple: true },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new UnreadableError(error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error));
  }
}

/** Null unless one of the options of the budgets is given. */
function budgetsOf(values: ReturnType<typeof parse>): BudgetSettings | null {
  const { 'player-budget': player, 'text-budget': text, 'block-seconds': block, 'bad-share': bad } = values;
  if (!values.budgets && [player, text, block, bad].every((value) => value === undefined)) return null;
  const badShare = Number(bad ?? 0);
  if (!(badShare >= 0 && badShare <= 1)) throw new UnreadableError(`--bad-share must be from 0 to 1, not ${bad}`);
  const blockSeconds = block === undefined ? {} : { blockSeconds: wholeNumber('--block-seconds', block, 1_000_000) };
  return {
    ...REPORTED_BUDGETS,
    player: {
      ...REPORTED_BUDGETS.player,
      ...(player !== undefined && readBudgetFlag('--player-budget', player)),
      ...blockSeconds,
    },
    timedtext: {
      ...REPORTED_BUDGETS.timedtext,
      ...(text !== undefined && readBudgetFlag('--text-budget', text)),
      ...blockSeconds,
    },
    badShare,
  };
}

function wholeNumber(name: string, text: string, max: number): number {
  const number = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number <= max)) throw new UnreadableError(`${name} must be a whole number from 0 to ${max}, not ${text}`);
  return number;
}

function client(name: string): (typeof CLIENTS)[number] {
  const found = CLIENTS.find((known) => known === name);
  if (!found) throw new UnreadableError(`--ignore-fields must be one of ${CLIENTS.join(', ')}, not ${name}`);
  return found;
}
