import { seededRandom } from '../catalogue/random.js';
import type { Incoming } from '../incoming-request.js';
import { matches, type RequestMatch } from './match.js';

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
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  /** Default: every request. */
  match?: RequestMatch;
  kind: FaultKind;
  /** Share of the matching requests that are hit, 0 to 1; default 1. */
  rate?: number;
  /** How many requests are hit at most; default: no limit. */
  times?: number;
  /** For `redirect`: where to. */
  location?: string;
  /** For `429-retry-after`; default 1. */
  retryAfterSeconds?: number;
}

/** Chooses the fault for a request: the first that matches it and that its rate selects. */
export class FaultRegistry {
  private faults: { fault: Fault; hits: number }[] = [];
  private random: () => number;

  constructor(private seed: number) {
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
      if (entry.hits >= times || !matches(match, incoming) || !isPossible(kind, incoming)) continue;
      if (rate < 1 && this.random() >= rate) continue;
      entry.hits += 1;
      return entry.fault;
    }
    return undefined;
  }
}

/** Whether a fault applies to this kind of request. */
function isPossible(kind: FaultKind, incoming: Incoming): boolean {
  if (kind === 'hostile-captions') return incoming.kind === 'timedtext';
  return kind !== 'bot-check' || incoming.kind === 'player' || incoming.kind === 'reel';
}
