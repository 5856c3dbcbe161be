import { setMaxListeners } from 'node:events';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt, type AttemptEnd, type EgressUse } from './attempt.js';
import type { Control, EgressPool } from './egress-pool.js';
import type { RequestScope } from './request-pipeline.js';
import { RetryBudget } from './retry.js';

/** The result of one attempt through one egress, and what it means for the egress. */
export interface Attempted<T> {
  result: T;
  end: AttemptEnd;
}

export interface Reading<T> {
  readonly use: EgressUse;
  readonly subject: string;
  readonly context: ReadingContext;
  /** Of each attempt, or the budget that all attempts share. */
  readonly retries: number | RetryBudget;
  readonly control: Control;
  readonly attempt: (scope: RequestScope) => Promise<Attempted<T>>;
}

/** Of several attempts without a result, the one that is reported: what another attempt can cure soonest. */
const REPORTED_FIRST: readonly AttemptEnd[] = ['busy', 'refused', 'unreached'];

/**
 * Reads through one egress, and from the start through another when the first is refused, not reached or busy: visitor data,
 * player response and caption URL belong to the same egress.
 *
 * @returns the last result, preferring `busy` to `refused` and that to `unreached`; null when every egress is refused
 */
export async function readThroughEgresses<T>(egresses: EgressPool, reading: Reading<T>): Promise<T | null> {
  const { use, subject, context, retries, control } = reading;
  // The videos of one call add up to a hundred listeners to its signal and remove them: not a leak.
  setMaxListeners(0, context.signal);
  const tried: string[] = [];
  let best: Attempted<T> | null = null;
  while (tried.length < egresses.attemptsMax) {
    context.signal.throwIfAborted();
    const taken = egresses.take(use, tried, context, control);
    if (!taken) break;
    const { egress, hasAlternative } = taken;
    const attempt = new Attempt(subject);
    const budget = typeof retries === 'number' ? new RetryBudget(retries) : retries;
    const attempts = tried.push(egress.name);
    try {
      const made = await reading.attempt({ egress, attempt, context, budget, hasAlternative, attempts });
      egresses.recordEnd(egress, use, made.end, control);
      if (made.end === 'answered') return made.result;
      if (best === null || rank(made) < rank(best)) best = made;
      // The one that can serve first was chosen; the others are busy for longer.
      if (made.end === 'busy') break;
    } finally {
      // Also after an exception: others wait for what the attempt holds.
      egress.gates[use].leave(attempt);
      taken.release();
    }
  }
  return best?.result ?? null;
}

function rank({ end }: Attempted<unknown>): number {
  return REPORTED_FIRST.indexOf(end);
}
