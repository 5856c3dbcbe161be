import { seededRandom } from '../catalogue/random.js';
import { type Incoming, REQUEST_KINDS, type RequestKind } from '../incoming-request.js';
import type { Visitors } from '../visitors.js';
import { REFUSING_PLAYABILITIES } from './refusals.js';

/** The faults that can be injected; README.md describes each. */
export const FAULT_KINDS = [
  '429',
  '429-retry-after',
  '500',
  'reset',
  'cut',
  'half-closed',
  'hang',
  'empty',
  'captcha',
  'consent',
  'bot-check',
  'truncated',
  'wrong-charset',
  'not-json',
  'slow-drip',
  'huge',
  'redirect',
  'hostile-captions',
] as const;

/** Refusals of callers and of client versions that look like other answers; README.md describes each. */
const REFUSAL_KINDS = [
  'retired',
  'retired-reason',
  'retired-subreason',
  'retired-screen',
  'reload',
  'reload-screen',
  'player-captcha',
  'bot-check-renewed',
  'token-enforced',
  'sorry-200',
  'sorry-403',
  'sorry-503',
  'forbidden',
  'feed-unavailable',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number] | (typeof REFUSAL_KINDS)[number];
export const ALL_FAULT_KINDS: readonly FaultKind[] = [...FAULT_KINDS, ...REFUSAL_KINDS];

export interface Fault {
  /** Default: every request. */
  match?: RequestMatch;
  kind: FaultKind;
  /** Share of the matching requests that are hit, 0 to 1; default 1. */
  rate?: number;
  /** How many requests are hit at most; default: no limit. */
  times?: number;
  /** For `player-captcha`: the playability status; default ERROR. */
  playability?: string;
  /** For `redirect`: where to. */
  location?: string;
  /** For `429-retry-after`; default 1. */
  retryAfterSeconds?: number;
}

/** Chooses the fault for a request: the first that matches it and that its rate selects. */
export class FaultRegistry {
  private faults: { fault: Fault; hits: number }[] = [];
  private random: () => number;

  constructor(
    private seed: number,
    private readonly tokens: { accepts(incoming: Incoming): boolean },
    private readonly visitors: Visitors,
  ) {
    this.random = seededRandom(seed);
  }

  /** Replaces all faults, and restarts their counts and random numbers. */
  set(faults: readonly Fault[]): void {
    this.faults = faults.map((fault) => ({ fault, hits: 0 }));
    this.random = seededRandom(this.seed);
  }

  /** Restarts the random numbers from this seed, now and after each `set`. */
  reseed(seed: number): void {
    this.seed = seed;
    this.random = seededRandom(seed);
  }

  choose(incoming: Incoming): Fault | undefined {
    for (const entry of this.faults) {
      const { match = {}, kind, rate = 1, times = Infinity } = entry.fault;
      if (entry.hits >= times || !matches(match, incoming) || !this.applies(kind, incoming)) continue;
      if (rate < 1 && this.random() >= rate) continue;
      entry.hits += 1;
      return entry.fault;
    }
    return undefined;
  }

  private applies(kind: FaultKind, incoming: Incoming): boolean {
    if (!isPossible(kind, incoming.kind)) return false;
    if (kind === 'token-enforced') return !this.tokens.accepts(incoming);
    return kind !== 'bot-check-renewed' || !this.visitors.isFromBotCheck(incoming);
  }
}

/** Whether a fault applies to this kind of request. */
export function isPossible(kind: FaultKind, request: RequestKind): boolean {
  if (kind === 'hostile-captions' || kind === 'token-enforced') return request === 'timedtext';
  if (kind === 'feed-unavailable') return request === 'feed';
  const ofPlayers = kind === 'bot-check' || kind === 'retired' || Object.hasOwn(REFUSING_PLAYABILITIES, kind);
  return !ofPlayers || request === 'player' || request === 'reel';
}

export const MATCHABLE_KINDS = [...REQUEST_KINDS, 'browse'] as const;
/** A kind of request; `browse` matches all kinds of browse requests. */
export type MatchableKind = RequestKind | 'browse';

/** Selects requests that match every given property; an empty match selects all. */
export interface RequestMatch {
  kind?: MatchableKind | readonly MatchableKind[];
  /** Matched against the path and query; a string is the source of a regular expression. */
  path?: RegExp | string;
  client?: string;
  clientVersion?: string;
  videoId?: string;
  channelId?: string;
  egress?: string;
}

export function matches(
  match: RequestMatch,
  incoming: Pick<Incoming, 'kind' | 'path' | 'client' | 'clientVersion' | 'videoId' | 'channelId' | 'egress'>,
): boolean {
  const kinds: readonly MatchableKind[] | undefined = typeof match.kind === 'string' ? [match.kind] : match.kind;
  if (kinds && !kinds.some((kind) => incoming.kind === kind || incoming.kind.startsWith(`${kind}-`))) return false;
  if (match.path !== undefined && !new RegExp(match.path).test(incoming.path)) return false;
  if (match.client !== undefined && match.client !== incoming.client) return false;
  if (match.clientVersion !== undefined && match.clientVersion !== incoming.clientVersion) return false;
  if (match.egress !== undefined && match.egress !== incoming.egress) return false;
  if (match.videoId !== undefined && match.videoId !== incoming.videoId) return false;
  return match.channelId === undefined || match.channelId === incoming.channelId;
}
