import { PLAYLIST_SHAPES } from '../calls/playlist-page.js';
import { CLIENTS } from '../catalogue/model.js';
import { isJsonObject, type Json, type JsonObject, parseJsonObject } from '../json.js';
import { type Budget, type BudgetSettings, REPORTED_BUDGETS } from '../budgets.js';
import type { Settings } from '../settings.js';
import { ALL_FAULT_KINDS, type Fault } from './fault-registry.js';
import { MATCHABLE_KINDS, type RequestMatch } from './match.js';

/** The fake YouTube cannot read a command-line option or control request; the message gives the reason in one line. */
export class UnreadableError extends Error {}

const NUMBERS = ['signatureTimestamp', 'poTokenSeconds', 'timeScale'] as const satisfies (keyof Settings)[];
const SETTINGS: readonly (keyof Settings)[] = [
  'latencyMs',
  'playlistShape',
  'fieldsIgnored',
  'consentRequired',
  'visitorDataRequired',
  'budgets',
  ...NUMBERS,
];

/**
 * Reads the body of `POST /fake-youtube/faults`.
 *
 * @throws UnreadableError
 */
export function readChanges(text: string): { faults?: Fault[]; settings: Partial<Settings> } {
  const body = parseJsonObject(text);
  if (!body) throw new UnreadableError('The body must be a JSON object');
  refuseOthers(body, ['faults', ...SETTINGS]);
  const { faults, latencyMs, playlistShape, fieldsIgnored, consentRequired, visitorDataRequired, budgets } = body;
  return {
    ...(faults !== undefined && { faults: list('faults', faults).map(readFault) }),
    settings: {
      ...(latencyMs !== undefined && { latencyMs: number('latencyMs', latencyMs) }),
      ...(playlistShape !== undefined && { playlistShape: oneOf('playlistShape', playlistShape, PLAYLIST_SHAPES) }),
      ...(fieldsIgnored !== undefined && {
        fieldsIgnored: list('fieldsIgnored', fieldsIgnored).map((client) => oneOf('fieldsIgnored', client, CLIENTS)),
      }),
      ...(consentRequired !== undefined && { consentRequired: consentRequired === true }),
      ...(visitorDataRequired !== undefined && { visitorDataRequired: visitorDataRequired === true }),
      ...(budgets !== undefined && { budgets: budgets === null ? null : readBudgets(budgets) }),
      ...Object.fromEntries(
        NUMBERS.flatMap((name) => (body[name] === undefined ? [] : [[name, number(name, body[name])]])),
      ),
    },
  };
}

/**
 * Reads a fault from a command line: `429`, `429=0.1` or `429=0.1@player`.
 *
 * @throws UnreadableError
 */
export function readFaultFlag(text: string): Fault {
  const [, kind = '', rate, requests] = /^([a-z0-9-]+)(?:=([0-9.]+))?(?:@([a-z-]+))?$/.exec(text) ?? [];
  if (kind === '')
    throw new UnreadableError(`A fault is written kind[=rate][@requests], e.g. 429=0.1@player, not ${text}`);
  return {
    kind: oneOf('A fault', kind, ALL_FAULT_KINDS),
    ...(rate !== undefined && { rate: share(Number(rate)) }),
    ...(requests !== undefined && { match: { kind: oneOf('The request kind after @', requests, MATCHABLE_KINDS) } }),
  };
}

/**
 * Reads a budget from a command line: requests at once, then requests per minute, e.g. `30/5`.
 *
 * @throws UnreadableError
 */
export function readBudgetFlag(name: string, text: string): Omit<Budget, 'blockSeconds'> {
  const [, burst, perMinute] = /^([0-9]{1,6})\/([0-9]{1,6}(?:\.[0-9]+)?)$/.exec(text) ?? [];
  if (burst === undefined) throw new UnreadableError(`${name} is written burst/perMinute, e.g. 30/5, not ${text}`);
  return { burst: Number(burst), perMinute: Number(perMinute) };
}

/** What is not given is as reported of the platform. */
function readBudgets(json: Json): BudgetSettings {
  if (!isJsonObject(json)) throw new UnreadableError('budgets must be an object or null');
  refuseOthers(json, Object.keys(REPORTED_BUDGETS));
  const { player, timedtext, badShare } = json;
  return {
    ...REPORTED_BUDGETS,
    ...(player !== undefined && { player: readBudget('budgets.player', player, REPORTED_BUDGETS.player) }),
    ...(timedtext !== undefined && {
      timedtext: readBudget('budgets.timedtext', timedtext, REPORTED_BUDGETS.timedtext),
    }),
    ...Object.fromEntries(
      (['penaltySeconds', 'blockSecondsMax'] as const).flatMap((name) =>
        json[name] === undefined ? [] : [[name, number(`budgets.${name}`, json[name])]],
      ),
    ),
    ...(badShare !== undefined && { badShare: share(number('budgets.badShare', badShare)) }),
  };
}

function readBudget(name: string, json: Json, otherwise: Budget): Budget {
  if (!isJsonObject(json)) throw new UnreadableError(`${name} must be an object`);
  refuseOthers(json, Object.keys(otherwise));
  const given = Object.entries(json).map(([key, value]) => [key, number(`${name}.${key}`, value)]);
  return { ...otherwise, ...(Object.fromEntries(given) as Partial<Budget>) };
}

function readFault(json: Json): Fault {
  if (!isJsonObject(json)) throw new UnreadableError('A fault must be an object');
  refuseOthers(json, ['kind', 'match', 'rate', 'times', 'playability', 'location', 'retryAfterSeconds']);
  const { kind, match, rate, times, playability, location, retryAfterSeconds } = json;
  return {
    kind: oneOf('kind', kind, ALL_FAULT_KINDS),
    ...(match !== undefined && { match: readMatch(match) }),
    ...(rate !== undefined && { rate: share(number('rate', rate)) }),
    ...(times !== undefined && { times: number('times', times) }),
    ...(playability !== undefined && { playability: string('playability', playability) }),
    ...(location !== undefined && { location: string('location', location) }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds: number('retryAfterSeconds', retryAfterSeconds) }),
  };
}

function readMatch(json: Json): RequestMatch {
  if (!isJsonObject(json)) throw new UnreadableError('match must be an object');
  refuseOthers(json, ['kind', 'path', 'client', 'clientVersion', 'videoId', 'channelId', 'egress']);
  const { kind, path, client, clientVersion, videoId, channelId, egress } = json;
  const kinds = Array.isArray(kind) ? kind : [kind];
  return {
    ...(kind !== undefined && { kind: kinds.map((one: Json) => oneOf('match.kind', one, MATCHABLE_KINDS)) }),
    ...(path !== undefined && { path: expression(string('match.path', path)) }),
    ...(client !== undefined && { client: oneOf('match.client', client, CLIENTS) }),
    ...(clientVersion !== undefined && { clientVersion: string('match.clientVersion', clientVersion) }),
    ...(egress !== undefined && { egress: string('match.egress', egress) }),
    ...(videoId !== undefined && { videoId: string('match.videoId', videoId) }),
    ...(channelId !== undefined && { channelId: string('match.channelId', channelId) }),
  };
}

function refuseOthers(json: JsonObject, known: readonly string[]): void {
  const other = Object.keys(json).find((key) => !known.includes(key));
  if (other !== undefined) throw new UnreadableError(`${other} is not one of ${known.join(', ')}`);
}

function oneOf<T extends string>(name: string, value: Json, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) throw new UnreadableError(`${name} must be one of ${allowed.join(', ')}`);
  return found;
}

function list(name: string, value: Json): readonly Json[] {
  if (!Array.isArray(value)) throw new UnreadableError(`${name} must be a list`);
  return value as readonly Json[];
}

function string(name: string, value: Json): string {
  if (typeof value !== 'string') throw new UnreadableError(`${name} must be a string`);
  return value;
}

function number(name: string, value: Json): number {
  if (typeof value !== 'number' || !(value >= 0)) throw new UnreadableError(`${name} must be a number, 0 or more`);
  return value;
}

function share(rate: number): number {
  if (!(rate >= 0 && rate <= 1)) throw new UnreadableError('A rate must be from 0 to 1');
  return rate;
}

function expression(source: string): string {
  try {
    return new RegExp(source).source;
  } catch {
    throw new UnreadableError(`match.path is not a regular expression: ${source}`);
  }
}
