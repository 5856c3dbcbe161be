import { seededRandom } from '../catalogue/random.js';
import type { Incoming } from '../incoming-request.js';
import { matches, type RequestMatch } from './match.js';

/** Everything that can go wrong on purpose; README.md says what each looks like. */
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

/** Decides which requests are hit by which fault: the first that matches and whose dice say so. */
export class FaultBook {
  private faults: { fault: Fault; hits: number }[] = [];
  private random: () => number;

  constructor(private seed: number) {
    this.random = seededRandom(seed);
  }

  /** Replaces all faults, and starts counting and throwing dice anew. */
  set(faults: readonly Fault[]): void {
    this.faults = faults.map((fault) => ({ fault, hits: 0 }));
    this.random = seededRandom(this.seed);
  }

  /** From now on, and after the next `set` too, the dice fall as this seed says. */
  reseed(seed: number): void {
    this.seed = seed;
    this.random = seededRandom(seed);
  }

  strike(incoming: Incoming): Fault | undefined {
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

/** Some faults are answers to one kind of request only. */
function isPossible(kind: FaultKind, incoming: Incoming): boolean {
  if (kind === 'hostile-captions') return incoming.kind === 'timedtext';
  return kind !== 'bot-check' || incoming.kind === 'player' || incoming.kind === 'reel';
}
