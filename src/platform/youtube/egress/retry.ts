import { setTimeout as wait } from 'node:timers/promises';
import type { ReadingContext } from '../../video-platform.js';
import type { UpstreamResponse } from './upstream-response.js';

/** Full jitter: the n-th wait is anything from 0 to this times 2^n. */
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
 * Repeats a request after a transient failure: a 5xx, a broken connection, a timeout, a truncated response, or a 429 with
 * `Retry-After`. Any other response is returned immediately, and so is a failure whose retry would start after the deadline.
 */
export async function withRetries(
  attempt: () => Promise<UpstreamResponse>,
  budget: RetryBudget,
  context: ReadingContext,
  environment: typeof REAL_RETRY_ENVIRONMENT = REAL_RETRY_ENVIRONMENT,
): Promise<UpstreamResponse> {
  for (let retries = 0; ; retries += 1) {
    const response = await attempt();
    const jitterMs = environment.random() * Math.min(DELAY_MAX_MS, DELAY_BASE_MS * 2 ** retries);
    const waitMs = waitBefore(response, jitterMs);
    if (waitMs === null || environment.now() + waitMs >= context.deadlineAtMs || !budget.take()) return response;
    await environment.sleep(waitMs, context.signal);
  }
}

/** Milliseconds to wait before the next attempt, or null for a response that is not retried. */
function waitBefore(response: UpstreamResponse, jitterMs: number): number | null {
  switch (response.kind) {
    case 'ok':
    case 'busy':
      return null;
    case 'blocked':
      if (response.reason === 'empty-body') return jitterMs;
      // A 429 without `Retry-After` gets no further requests.
      if (response.reason !== 'too-many-requests' || response.retryAfterSeconds === null) return null;
      // The jitter spreads requests that received the same `Retry-After`.
      return response.retryAfterSeconds * 1000 + jitterMs;
    case 'http-error':
      return response.status >= 500 || response.status === 408 ? jitterMs : null;
    case 'timeout':
    case 'network':
    case 'unreadable':
      return jitterMs;
  }
}
