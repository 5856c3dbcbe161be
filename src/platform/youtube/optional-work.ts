import { Attempt, RetryBudget } from './egress/attempt.js';
import type { RequestScope } from './egress/request-pipeline.js';

/** How long the optional work may continue after the main work, which started at the same time. */
const GRACE_MS = 2_000;
const RETRIES = 1;

/**
 * Runs the main work and, concurrently, optional work that adds to its result. The optional work never fails the main work
 * and delays it by at most the grace period. Its result is null when it failed or did not finish in time.
 */
export async function withOptional<M, S>(
  scope: RequestScope,
  main: () => Promise<M>,
  side: (optionalScope: RequestScope) => Promise<S>,
  graceMs = GRACE_MS,
): Promise<[M, S | null]> {
  const { context } = scope;
  const controller = new AbortController();
  const signal = AbortSignal.any([context.signal, controller.signal]);
  const optionalScope: RequestScope = {
    ...scope,
    attempt: new Attempt(scope.attempt.subject, 'optional'),
    // A budget of its own: optional work must not use up the retries of the main work.
    budget: new RetryBudget(RETRIES),
    context: optionalContext(scope, signal),
  };
  let timer: NodeJS.Timeout | undefined;
  const optionalDone = side(optionalScope).catch(() => null);
  try {
    const result = await main();
    timer = setTimeout(() => controller.abort(new Error('The optional work exceeded its grace period.')), graceMs);
    const addition = await optionalDone;
    context.signal.throwIfAborted();
    return [result, addition];
  } finally {
    clearTimeout(timer);
    controller.abort(new Error('The main work has ended.'));
  }
}

/** The caller's context with another signal; what can change is read through. */
function optionalContext({ context }: RequestScope, signal: AbortSignal): RequestScope['context'] {
  return {
    signal,
    organizationId: context.organizationId,
    fairnessKey: context.fairnessKey,
    get deadlineAtMs() {
      return context.deadlineAtMs;
    },
    get background() {
      return context.background === true;
    },
  };
}
