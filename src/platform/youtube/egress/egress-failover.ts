import { setMaxListeners } from 'node:events';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt, type AttemptEnd, type UseName } from './attempt.js';
import { ATTEMPTS_MAX, type EgressPool } from './egress-pool.js';
import type { RequestScope } from './request-pipeline.js';
import { RetryBudget } from './retry.js';

/** The result of one attempt through one egress, and what it means for the egress. */
export interface AttemptResult<T> {
  result: T;
  end: AttemptEnd;
}

/** A channel or video that is read, one attempt after another. */
interface Work<T> {
  readonly use: UseName;
  readonly subject: string;
  readonly context: ReadingContext;
  /** Of each attempt, or the budget that all attempts share. */
  readonly retries: number | RetryBudget;
  readonly attempt: (scope: RequestScope) => Promise<AttemptResult<T>>;
}

/** Of several attempts without a result, the one that is reported: what another attempt can cure soonest. */
const REPORTED_FIRST: readonly AttemptEnd[] = ['busy', 'refused', 'unreached', 'restricted'];

/**
 * Reads through one egress, and from the start through another when the first is refused, not reached, busy or in a country
 * where the video is not available: visitor data, player response and caption URL belong to the same egress.
 *
 * @returns the last result, preferring `busy` to `refused`, that to `unreached` and that to `restricted`; null when every egress
 *   is refused, or every one that is not in a country without the video
 */
export async function readThroughEgresses<T>(egresses: EgressPool, work: Work<T>): Promise<T | null> {
  const { use, subject, context, retries } = work;
  // The videos of one call add up to a hundred listeners to its signal and remove them: not a leak.
  setMaxListeners(0, context.signal);
  const tried: string[] = [];
  let best: AttemptResult<T> | null = null;
  // One in a country without the video does not count: all are tried that may be in another, as far as that ends.
  let elsewhere = 0;
  while (tried.length - elsewhere < egresses.attemptsMax && tried.length < ATTEMPTS_MAX) {
    context.signal.throwIfAborted();
    const taken = egresses.take(use, tried, context);
    if (!taken) {
      if (best?.end === 'restricted' && egresses.hasUntried(tried)) best = null;
      break;
    }
    const { egress, hasAlternative } = taken;
    const attempt = new Attempt(subject);
    const budget = typeof retries === 'number' ? new RetryBudget(retries) : retries;
    const attempts = tried.push(egress.name);
    try {
      const made = await work.attempt({ egress, attempt, context, budget, hasAlternative, attempts });
      egresses.recordEnd(egress, use, made.end);
      if (made.end === 'answered') return made.result;
      if (made.end === 'restricted') elsewhere += 1;
      // Of several countries the last one, after which no other was left.
      const isLast = made.end === 'restricted' && best?.end === 'restricted';
      if (best === null || isLast || rank(made) < rank(best)) best = made;
      // The one that can serve first was chosen; the others are busy for longer.
      if (made.end === 'busy') break;
    } finally {
      // Also after an exception: others wait for what the attempt holds.
      egress.uses[use].line.leave(attempt);
      taken.release();
    }
  }
  return best?.result ?? null;
}

function rank({ end }: AttemptResult<unknown>): number {
  return REPORTED_FIRST.indexOf(end);
}
