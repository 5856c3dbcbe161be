import { setMaxListeners } from 'node:events';
import { withCacheBudget } from '../cache/cache-budget.js';
import type { Environment } from '../config/environment.js';
import { UpstreamError } from '../domain/errors.js';
import type { RequestContext } from '../http/server/request-context.js';
import type { ReadingContext } from '../platform/video-platform.js';

/** Thrown by what a call waits for when its deadline passes or its caller disconnects. */
export class CallEnded extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CallEnded';
  }
}

/** When a request arrived, and the signal that its response has ended: both come from the transport. */
export interface CallTimes {
  /** In milliseconds of `performance.now()`. */
  startedAtMs: number;
  /** Aborts when the response has ended, complete or not. */
  responseEnd: AbortSignal;
}

export interface CallOptions extends CallTimes {
  /** Who calls: organizations take turns at the platform. */
  organizationId: string;
  /** Work of a job: goes behind calls that somebody waits for, and is counted and settled when the job stores it. */
  background?: boolean;
  /** The call reads the videos of its list, and not the list alone. */
  forVideos?: boolean;
}

/** One caller's call: its deadline and its cancellation. */
export class Call implements ReadingContext {
  readonly signal: AbortSignal;
  readonly deadlineAtMs: number;
  readonly fairnessKey = this;
  readonly background: boolean;
  readonly forVideos: boolean;
  readonly organizationId: string;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private finished = false;

  constructor(
    deadlineSeconds: number,
    {
      startedAtMs = performance.now(),
      responseEnd,
      background = false,
      forVideos = false,
      organizationId = '',
    }: Partial<CallOptions> = {},
  ) {
    this.background = background;
    this.forVideos = forVideos;
    this.organizationId = organizationId;
    this.signal = this.controller.signal;
    // Each fetch of the call adds a listener and removes it at its end, so that many listeners are no leak.
    setMaxListeners(0, this.signal);
    this.deadlineAtMs = startedAtMs + deadlineSeconds * 1000;
    this.timer = setTimeout(
      () => this.controller.abort(new CallEnded('The deadline of the call has passed.')),
      this.deadlineAtMs - performance.now(),
    );
    if (responseEnd?.aborted) this.disconnect();
    else responseEnd?.addEventListener('abort', () => this.disconnect(), { once: true });
  }

  /** Cancels the call, unless it has finished. */
  disconnect(): void {
    if (this.finished) return;
    clearTimeout(this.timer);
    this.controller.abort(new CallEnded('The caller has disconnected.'));
  }

  /** Stops the deadline timer once nothing waits for the call; `disconnect` does nothing from then on. */
  finish(): void {
    this.finished = true;
    clearTimeout(this.timer);
  }
}

/**
 * Reads a list alone, within the deadline of a call of its own.
 *
 * @throws UpstreamError `upstream_timeout` at the deadline, and what `read` throws
 */
export async function readWithinDeadline<T>(
  { startedAtMs, responseEnd, caller }: RequestContext,
  environment: Environment,
  read: (call: Call) => Promise<T>,
): Promise<T> {
  const options = { startedAtMs, responseEnd, organizationId: caller.organization.id };
  const call = new Call(environment.REQUEST_DEADLINE_SECONDS, options);
  try {
    return await withCacheBudget(environment, () => read(call));
  } catch (error) {
    throw error instanceof CallEnded ? new UpstreamError('upstream_timeout', error) : error;
  } finally {
    call.finish();
  }
}
