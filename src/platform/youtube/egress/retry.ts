import { setTimeout as wait } from 'node:timers/promises';
import type { ReadingContext } from '../../video-platform.js';
import { isUnreached, type UpstreamResponse } from './upstream-response.js';

/** The n-th wait is anything from 0 to this times 2^n. */
const DELAY_BASE_MS = 250;
const DELAY_MAX_MS = 4_000;

/** The retries that all requests for one video or one list share. */
export class RetryBudget {
  constructor(private remaining: number) {}

  /** Uses one retry; false when none remains. */
  take(): boolean {
    if (this.remaining <= 0) return false;
    this.remaining -= 1;
    return true;
  }
}

/** Randomness and time, which tests replace. Waiting rejects with the signal's reason when it is aborted. */
export const REAL_RETRY_ENVIRONMENT = {
  random: (): number => Math.random(),
  now: (): number => performance.now(),
  sleep: (ms: number, signal: AbortSignal): Promise<void> =>
    wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted()),
};

/**
 * Repeats a request after a transient failure: a 5xx, a broken connection, a timeout, a truncated or empty response. Any other
 * response is returned immediately, a refusal too because another egress may serve, and so is a failure whose retry would
 * start after the deadline.
 *
 * @param hasAlternative whether another egress can be tried: then it is, where no response of the platform arrived
 */
export async function withRetries(
  send: () => Promise<UpstreamResponse>,
  budget: RetryBudget,
  context: ReadingContext,
  hasAlternative: boolean,
  environment: typeof REAL_RETRY_ENVIRONMENT = REAL_RETRY_ENVIRONMENT,
): Promise<UpstreamResponse> {
  for (let retries = 0; ; retries += 1) {
    const response = await send();
    const waitMs = environment.random() * Math.min(DELAY_MAX_MS, DELAY_BASE_MS * 2 ** retries);
    const isLate = environment.now() + waitMs >= context.deadlineAtMs;
    if (!isTransient(response) || (hasAlternative && isUnreached(response)) || isLate || !budget.take())
      return response;
    await environment.sleep(waitMs, context.signal);
  }
}

function isTransient(response: UpstreamResponse): boolean {
  switch (response.kind) {
    case 'ok':
    case 'busy':
      return false;
    case 'blocked':
      return response.reason === 'empty-body';
    case 'http-error':
      return response.status >= 500 || response.status === 408;
    case 'timeout':
    case 'network':
    case 'foreign-page':
    case 'unreadable':
      return true;
  }
}
