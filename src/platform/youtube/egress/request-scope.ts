import { setMaxListeners } from 'node:events';
import type { ReadingContext } from '../../video-platform.js';
import type { Admission } from './circuit-breaker.js';
import type { Egress } from './egress.js';
import type { RequestScope } from './request-pipeline.js';
import { RetryBudget } from './retry.js';

/**
 * The scope of one attempt through one egress. A probe of a blocked egress is not retried.
 *
 * @param retries how many, or the budget that all attempts at one video share
 */
export function requestScope(
  egress: Egress,
  admission: Admission,
  context: ReadingContext,
  retries: number | RetryBudget,
): RequestScope {
  // The videos of one call add up to a hundred listeners to its signal and remove them: not a leak.
  setMaxListeners(0, context.signal);
  if (admission.probe) return { egress, admission, context, budget: new RetryBudget(0) };
  const budget = typeof retries === 'number' ? new RetryBudget(retries) : retries;
  return { egress, admission, context, budget };
}
