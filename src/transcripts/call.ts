import { setMaxListeners } from 'node:events';
import type { ReadingContext } from '../platform/video-platform.js';

/** Why a call stopped waiting: its deadline came, or its caller left. */
export class CallEnded extends Error {
  constructor(readonly why: 'deadline' | 'left') {
    super(why === 'deadline' ? 'The deadline of the call has passed.' : 'The caller has left.');
    this.name = 'CallEnded';
  }
}

/** One caller's call: how long it may take, and whether somebody still waits for it. */
export class Call implements ReadingContext {
  readonly signal: AbortSignal;
  readonly deadlineAtMs: number;
  readonly fairnessKey = this;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private finished = false;

  /** @param startedAtMs when the request arrived, in milliseconds of `performance.now()` */
  constructor(
    readonly deadlineSeconds: number,
    startedAtMs: number = performance.now(),
  ) {
    this.signal = this.controller.signal;
    // Each fetch of the call listens, and lets go when it ends: that is no leak to be warned of.
    setMaxListeners(0, this.signal);
    this.deadlineAtMs = startedAtMs + deadlineSeconds * 1000;
    this.timer = setTimeout(
      () => this.controller.abort(new CallEnded('deadline')),
      this.deadlineAtMs - performance.now(),
    );
  }

  /**
   * Waits for work that cannot be aborted, until the call ends.
   *
   * @throws CallEnded when the call ends first; what becomes of the work is then for the caller to see to
   */
  async within<T>(work: Promise<T>): Promise<T> {
    let stop: (() => void) | undefined;
    const ended = new Promise<never>((_resolve, reject) => {
      stop = () => reject(this.signal.reason as Error);
      if (this.signal.aborted) stop();
      else this.signal.addEventListener('abort', stop, { once: true });
    });
    try {
      return await Promise.race([work, ended]);
    } finally {
      if (stop) this.signal.removeEventListener('abort', stop);
    }
  }

  /** Nobody reads the answer any more. */
  disconnect(): void {
    if (this.finished) return;
    clearTimeout(this.timer);
    this.controller.abort(new CallEnded('left'));
  }

  /** Nothing is waited for any more; the deadline need not come. */
  finish(): void {
    this.finished = true;
    clearTimeout(this.timer);
  }
}
