import type { ReadingContext } from '../../video-platform.js';

/** The time that a request needs before the deadline of its call. */
export const DEADLINE_MARGIN_MS = 1_000;

/** The result of waiting: the request may be sent, cannot be sent before its deadline, or the egress was paused. */
export type Turn = { kind: 'go' } | { kind: 'busy'; waitMs: number } | { kind: 'paused' };

interface WaitingRequest {
  end: (turn: Turn) => void;
}

/** The budget that a queue waits for. */
export interface Budget {
  /** Milliseconds until this many requests may be sent; 0 for now. */
  waitMs(count: number): number;
  /** Counts one request as sent. */
  spend(): void;
}

/**
 * Requests that wait for the pace of one egress. Calls take turns, each with its requests in order. A request whose turn
 * would come after the deadline of its call is refused at once instead of waiting in vain.
 */
export class PaceQueue {
  // In order of insertion: the first key is the next to be served, and moves to the end afterwards.
  private readonly waitingByKey = new Map<object, WaitingRequest[]>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly budget: Budget) {}

  get length(): number {
    let length = 0;
    for (const waiting of this.waitingByKey.values()) length += waiting.length;
    return length;
  }

  /**
   * Milliseconds until a further request of a call has its turn.
   *
   * @param ahead requests that will enter the queue before it
   */
  estimateMs(fairnessKey: object, ahead = 0): number {
    const own = this.waitingByKey.get(fairnessKey)?.length ?? 0;
    let before = own + ahead;
    for (const [key, waiting] of this.waitingByKey)
      if (key !== fairnessKey) before += Math.min(waiting.length, own + 1);
    return this.budget.waitMs(before + 1);
  }

  /** Waits for the turn of a request. Rejects with the signal's reason when it is aborted first. */
  async wait(context: ReadingContext): Promise<Turn> {
    context.signal.throwIfAborted();
    const waitMs = this.estimateMs(context.fairnessKey);
    if (waitMs === 0) {
      this.budget.spend();
      return { kind: 'go' };
    }
    if (waitMs > timeLeftMs(context)) return { kind: 'busy', waitMs };
    return this.enter(context);
  }

  /** Ends the waiting of all requests: the egress was refused. */
  releaseAll(): void {
    const released = [...this.waitingByKey.values()].flat();
    for (const waiting of released) waiting.end({ kind: 'paused' });
  }

  private enter(context: ReadingContext): Promise<Turn> {
    const { fairnessKey, signal } = context;
    return new Promise((resolve, reject) => {
      let deadline: NodeJS.Timeout | undefined;
      const leave = () => {
        signal.removeEventListener('abort', abort);
        clearTimeout(deadline);
        this.remove(fairnessKey, waiting);
        this.schedule();
      };
      const abort = () => {
        leave();
        reject(signal.reason as Error);
      };
      const waiting: WaitingRequest = {
        end: (turn) => {
          leave();
          resolve(turn);
        },
      };
      // The deadline can change while it waits, and other calls can delay its turn.
      const checkDeadline = () => {
        const leftMs = timeLeftMs(context);
        if (leftMs <= 0) waiting.end({ kind: 'busy', waitMs: Math.max(1_000, this.estimateMs(fairnessKey)) });
        else deadline = setTimeout(checkDeadline, Math.min(leftMs, 2 ** 31 - 1));
      };
      signal.addEventListener('abort', abort, { once: true });
      const others = this.waitingByKey.get(fairnessKey);
      if (others) others.push(waiting);
      else this.waitingByKey.set(fairnessKey, [waiting]);
      checkDeadline();
      this.schedule();
    });
  }

  private schedule(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.waitingByKey.size > 0) this.timer = setTimeout(() => this.serve(), Math.ceil(this.budget.waitMs(1)));
  }

  private serve(): void {
    while (this.waitingByKey.size > 0 && this.budget.waitMs(1) === 0) {
      const [next] = this.waitingByKey;
      if (!next) return;
      const [fairnessKey, [first]] = next;
      this.budget.spend();
      first?.end({ kind: 'go' });
      const remaining = this.waitingByKey.get(fairnessKey);
      if (!remaining) continue;
      this.waitingByKey.delete(fairnessKey);
      this.waitingByKey.set(fairnessKey, remaining);
    }
    this.schedule();
  }

  private remove(fairnessKey: object, waiting: WaitingRequest): void {
    const remaining = this.waitingByKey.get(fairnessKey)?.filter((other) => other !== waiting) ?? [];
    if (remaining.length === 0) this.waitingByKey.delete(fairnessKey);
    else this.waitingByKey.set(fairnessKey, remaining);
  }
}

function timeLeftMs({ deadlineAtMs }: ReadingContext): number {
  return deadlineAtMs - DEADLINE_MARGIN_MS - performance.now();
}
