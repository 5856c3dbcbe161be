import type { ReadingContext } from '../../video-platform.js';
import type { Admission } from './circuit-breaker.js';
import type { AttemptVerdict, Egress, EgressUse } from './egress.js';
import type { EgressPool } from './egress-pool.js';

/** The result of one attempt through one egress. */
export interface Attempt<T> {
  result: T;
  verdict: AttemptVerdict;
  /** From the platform's `Retry-After`, if it sent one. */
  retryAfterSeconds: number | null;
}

/** Of several attempts without a result, the one that is reported: what another attempt can cure soonest. */
const REPORTED_FIRST: readonly AttemptVerdict[] = ['busy', 'refused', 'unreached'];

/**
 * Runs an attempt through one egress, and from the start through another when the first is refused, unreachable or busy:
 * visitor data, player response and caption URL belong to the same egress.
 *
 * @param subject the channel or video; one subject refused repeatedly does not mean that the egress is blocked
 * @returns the last result, preferring `busy` to `refused` and that to `unreached`; null when every egress is blocked
 */
export async function withProxyFailover<T>(
  egresses: EgressPool,
  use: EgressUse,
  subject: string,
  context: ReadingContext,
  attempt: (egress: Egress, admission: Admission) => Promise<Attempt<T>>,
): Promise<T | null> {
  const tried: string[] = [];
  let best: Attempt<T> | null = null;
  await egresses.refresh();
  while (tried.length < egresses.attemptsMax) {
    context.signal.throwIfAborted();
    const taken = egresses.take(use, tried, context);
    if (!taken) break;
    const { egress, admission } = taken;
    tried.push(egress.name);
    try {
      if (admission.probe && !(await admission.claimProbe(context.deadlineAtMs - performance.now()))) continue;
      const made = await attempt(egress, admission);
      egresses.recordVerdict(egress, use, made.verdict);
      if (made.verdict === 'answered') admission.succeeded();
      if (made.verdict === 'refused' || made.verdict === 'withheld') {
        const { verdict, retryAfterSeconds } = made;
        // The addresses of a gateway change, so its refusals say nothing about a rate. Data-centre addresses get bot checks
        // from the first request.
        const tooFast =
          use === 'video' && verdict === 'refused' && !egress.gateway && egress.pacer?.answeredMany('player');
        const by = tooFast ? 'player' : null;
        admission.blocked(subject, { address: use === 'channel', retryAfterSeconds, by });
      }
      if (!REPORTED_FIRST.includes(made.verdict)) return made.result;
      if (made.verdict !== 'busy') egresses.cooldown(egress, made.retryAfterSeconds);
      if (best === null || rank(made) < rank(best)) best = made;
      // The one whose pace can serve first was chosen; the others are busy for longer.
      if (made.verdict === 'busy') break;
    } finally {
      // Also after an exception: an admission without a result would leave the breaker open forever.
      admission.abandoned();
      taken.release();
    }
  }
  return best?.result ?? null;
}

function rank({ verdict }: Attempt<unknown>): number {
  return REPORTED_FIRST.indexOf(verdict);
}
