import { seededRandom } from '../catalogue/random.js';
import { type Incoming, REQUEST_KINDS, type RequestKind } from '../incoming-request.js';
import type { Visitors } from '../visitors.js';
import { PAGES, REFUSING_PLAYABILITIES } from './refusals.js';

/** The faults of the network and of addresses; with refusals that look like other answers, all are described in README.md. */
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
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number] | keyof typeof REFUSING_PLAYABILITIES | keyof typeof PAGES;
export const ALL_FAULT_KINDS = [
  ...new Set([...FAULT_KINDS, ...Object.keys(PAGES), ...Object.keys(REFUSING_PLAYABILITIES)]),
] as readonly FaultKind[];

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
  if (kind === 'token-enforced') return request === 'timedtext';
  if (kind === 'feed-unavailable') return request === 'feed';
  if (kind === 'incomplete' || kind === 'unknown-error') return request.startsWith('browse-');
  const ofPlayers = kind === 'bot-check' || kind === 'retired' || isPlayability(kind);
  return !ofPlayers || request === 'player' || request === 'reel';
}

export function isPlayability(kind: FaultKind): kind is keyof typeof REFUSING_PLAYABILITIES {
  return Object.hasOwn(REFUSING_PLAYABILITIES, kind);
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

const EXACT = ['client', 'clientVersion', 'videoId', 'channelId', 'egress'] as const;

export function matches(
  match: RequestMatch,
  incoming: Pick<Incoming, 'kind' | 'path' | (typeof EXACT)[number]>,
): boolean {
  const { kind, path, ...exact } = match;
  const kinds: readonly string[] | undefined = typeof kind === 'string' ? [kind] : kind;
  if (kinds && !kinds.some((each) => incoming.kind === each || incoming.kind.startsWith(`${each}-`))) return false;
  if (path !== undefined && !new RegExp(path).test(incoming.path)) return false;
  return EXACT.every((name) => exact[name] === undefined || exact[name] === incoming[name]);
}
