import { setMaxListeners } from 'node:events';
import type { ReadingContext } from '../../video-platform.js';
import type { AttemptVerdict, EgressUse } from './egress.js';
import type { EgressPool } from './egress-pool.js';
import type { RequestScope } from './request-pipeline.js';
import { RetryBudget } from './retry.js';

/** The result of one attempt through one egress. */
export interface Attempt<T> {
  result: T;
  verdict: AttemptVerdict;
}

/** Of several attempts without a result, the one that is reported: what another attempt can cure soonest. */
const REPORTED_FIRST: readonly AttemptVerdict[] = ['busy', 'refused', 'unreached'];

/**
 * Runs an attempt through one egress, and from the start through another when the first is refused, unreachable or busy:
 * visitor data, player response and caption URL belong to the same egress.
 *
 * @param subject the channel or video; one subject refused repeatedly does not mean that the egress is refused
 * @param retries of each attempt, or the budget that all attempts share
 * @returns the last result, preferring `busy` to `refused` and that to `unreached`; null when every egress is paused
 */
export async function withProxyFailover<T>(
  egresses: EgressPool,
  use: EgressUse,
  subject: string,
  context: ReadingContext,
  retries: number | RetryBudget,
  attempt: (scope: RequestScope) => Promise<Attempt<T>>,
): Promise<T | null> {
  // The videos of one call add up to a hundred listeners to its signal and remove them: not a leak.
  setMaxListeners(0, context.signal);
  const tried: string[] = [];
  let best: Attempt<T> | null = null;
  while (tried.length < egresses.attemptsMax) {
    context.signal.throwIfAborted();
    const taken = egresses.take(use, tried, context);
    if (!taken) break;
    const { egress } = taken;
    const control = egress.controls[use];
    const id = { subject };
    tried.push(egress.name);
    const budget = typeof retries === 'number' ? new RetryBudget(retries) : retries;
    try {
      const made = await attempt({ egress, attempt: id, context, budget });
      egresses.recordVerdict(egress, use, made.verdict);
      if (!REPORTED_FIRST.includes(made.verdict)) return made.result;
      if (best === null || rank(made) < rank(best)) best = made;
      // The one that can serve first was chosen; the others are busy for longer.
      if (made.verdict === 'busy') break;
    } finally {
      // Also after an exception: others wait for the result of an attempt.
      control.leave(id);
      taken.release();
    }
  }
  return best?.result ?? null;
}

function rank({ verdict }: Attempt<unknown>): number {
  return REPORTED_FIRST.indexOf(verdict);
}
