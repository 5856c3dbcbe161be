import type { ReadingContext } from '../../video-platform.js';
import type { Admission } from './circuit-breaker.js';
import type { AttemptVerdict, Egress, EgressPool, EgressUse } from './egress-pool.js';

/** How many egresses one channel or video is attempted through. */
const EGRESSES_PER_TASK_MAX = 3;

/** The result of one attempt through one egress. */
export interface Attempt<T> {
  result: T;
  verdict: AttemptVerdict;
  /** From the platform's `Retry-After`, if it sent one. */
  retryAfterSeconds: number | null;
}

/**
 * Runs an attempt through one egress, and from the start through another when the first is refused or unreachable:
 * visitor data, player response and caption URL belong to the same egress.
 *
 * @param subject the channel or video; one subject refused repeatedly does not mean that the egress is blocked
 * @returns the last result, preferring `refused` to `unreached`; null when every egress is blocked
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
      // Also after an exception: an admission without a result would keep a blocked egress blocked.
      taken.admission.abandoned();
    }
  }
  return best?.result ?? null;
}
