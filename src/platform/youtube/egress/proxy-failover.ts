import type { ReadingContext } from '../../video-platform.js';
import type { Admission } from './circuit-breaker.js';
import type { Egress, EgressPool, EgressUse } from './egress-pool.js';

/** How many exits a piece of work is tried through. */
const EGRESSES_PER_TASK_MAX = 3;

/**
 * What a try says about its exit. `refused`: the platform does not want it. `unreached`: nothing came back through it.
 * Both send the work to another exit. `withheld`: texts came empty, which is a block of the exit when it happens to one
 * video after another, and the video's own otherwise; so it is counted, and the work ends. `nothing`: no sign of either.
 */
export const ATTEMPT_VERDICTS = ['answered', 'refused', 'withheld', 'unreached', 'nothing'] as const;
export type AttemptVerdict = (typeof ATTEMPT_VERDICTS)[number];

/** What one try through one exit brought. */
export interface Attempt<T> {
  result: T;
  verdict: AttemptVerdict;
  /** For how long the platform asked to be left alone, if it said so. */
  retryAfterSeconds: number | null;
}

/**
 * Does a piece of work through one exit, and from the start through another one when the first is of no use: visitor
 * data, player and caption URL belong together and to one exit.
 *
 * @param subject what is read; the same subject refused again and again is no sign of a blocked exit
 * @returns the last result, one that was refused before one that did not get through; null when every exit is shut
 */
export async function withProxyFailover<T>(
  egresses: EgressPool,
  use: EgressUse,
  subject: string,
  context: ReadingContext,
  attempt: (egress: Egress, admission: Admission) => Promise<Attempt<T>>,
): Promise<T | null> {
  const tried = new Set<Egress>();
  let best: Attempt<T> | null = null;
  while (tried.size < EGRESSES_PER_TASK_MAX) {
    context.signal.throwIfAborted();
    const taken = egresses.take(use, tried);
    if (!taken) break;
    tried.add(taken.egress);
    try {
      const made = await attempt(taken.egress, taken.admission);
      egresses.recordVerdict(taken.egress, use, made.verdict);
      if (made.verdict === 'answered') taken.admission.succeeded();
      if (made.verdict === 'refused' || made.verdict === 'withheld') taken.admission.blocked(subject);
      if (made.verdict !== 'refused' && made.verdict !== 'unreached') return made.result;
      egresses.cooldown(taken.egress, made.retryAfterSeconds);
      if (best?.verdict !== 'refused') best = made;
    } finally {
      // Whatever happened: an admission that is never ended would keep a shut exit shut.
      taken.admission.abandoned();
    }
  }
  return best?.result ?? null;
}
