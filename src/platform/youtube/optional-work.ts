import type { RequestScope } from './egress/request-pipeline.js';
import { RetryBudget } from './egress/retry.js';

/** How long finished work waits for what only adds to it; both began together. */
const GRACE_MS = 2_000;
const RETRIES = 1;

/**
 * Does the main work and, beside it, work that only adds to its result: the side never fails the main, and never holds it
 * up for longer than a moment. Null for a side that failed or was not done in time.
 */
export async function withOptional<M, S>(
  scope: RequestScope,
  main: () => Promise<M>,
  side: (optionalScope: RequestScope) => Promise<S>,
  graceMs = GRACE_MS,
): Promise<[M, S | null]> {
  const { context } = scope;
  const controller = new AbortController();
  const stop = () => controller.abort(context.signal.reason);
  context.signal.addEventListener('abort', stop, { once: true });
  // A budget of its own: what only adds must not use up the retries of what matters.
  const optionalScope: RequestScope = {
    egress: scope.egress,
    admission: scope.admission,
    budget: new RetryBudget(RETRIES),
    context: optionalContext(scope, controller.signal),
  };
  let timer: NodeJS.Timeout | undefined;
  const optionalDone = side(optionalScope).catch(() => null);
  try {
    const result = await main();
    timer = setTimeout(() => controller.abort(new Error('It took longer than what it adds to.')), graceMs);
    const addition = await optionalDone;
    context.signal.throwIfAborted();
    return [result, addition];
  } finally {
    clearTimeout(timer);
    context.signal.removeEventListener('abort', stop);
    controller.abort(new Error('It is not needed any more.'));
  }
}

/** The same caller with an end of its own; the deadline is still read from the caller's, because it can move. */
function optionalContext({ context }: RequestScope, signal: AbortSignal): RequestScope['context'] {
  return {
    signal,
    fairnessKey: context.fairnessKey,
    get deadlineAtMs() {
      return context.deadlineAtMs;
    },
  };
}
