import type { ReadingContext, Requester } from '../../video-platform.js';

/** The time that a request needs before the deadline of its call. */
export const DEADLINE_MARGIN_MS = 1_000;

/** The result of waiting: the request may be sent, cannot be sent before its deadline, or the egress was paused. */
export type Turn = { kind: 'go' } | { kind: 'busy'; waitMs: number } | { kind: 'paused' };

interface WaitingRequest {
  /** False once a call waits for the result too. A request that came from a call never becomes a background one. */
  readonly background: boolean;
  end: (turn: Turn) => void;
}

/** The budget that a queue waits for. */
export interface Budget {
  /** Milliseconds until this many requests may be sent; 0 for now. */
  waitMs(count: number): number;
  /** The part of the budget, in requests, that background requests leave to calls. */
  reserve(): number;
  /** Counts one request as sent. */
  spend(): void;
}

/**
 * Requests that wait for the pace of one egress. Calls take turns, each with its requests in order. A request whose turn
 * would come after the deadline of its call is refused at once instead of waiting in vain.
 *
 * Background requests are served when no call waits and at least the reserve remains afterwards.
 */
export class PaceQueue {
  // In order of insertion: the first key is the next to be served, and moves to the end afterwards.
  private readonly waitingByKey = new Map<object, WaitingRequest[]>();
  /** The waiting requests that came as background ones; without any, nothing else is counted one by one. */
  private readonly background = new Set<WaitingRequest>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly budget: Budget) {}

  get length(): number {
    let length = 0;
    for (const waiting of this.waitingByKey.values()) length += waiting.length;
    return length;
  }

  /** The waiting requests that can delay one of a requester: background requests delay no call. */
  lengthFor(requester: Requester): number {
    let length = this.length;
    if (!isBackground(requester)) for (const { background } of this.background) if (background) length -= 1;
    return length;
  }

  /**
   * Milliseconds until a further request of a call has its turn. Background requests delay no call.
   *
   * @param ahead requests that will enter the queue before it
   */
  estimateMs(requester: Requester, ahead = 0): number {
    const background = isBackground(requester);
    const own = this.count(this.waitingByKey.get(requester.fairnessKey) ?? [], background);
    let before = own + ahead;
    for (const [key, waiting] of this.waitingByKey) {
      if (key !== requester.fairnessKey) before += Math.min(this.count(waiting, background), own + 1);
      if (background) before += this.count(waiting, false);
    }
    return this.budget.waitMs(before + 1 + (background ? this.budget.reserve() : 0));
  }

  /** Waits for the turn of a request. Rejects with the signal's reason when it is aborted first. */
  async wait(context: ReadingContext): Promise<Turn> {
    context.signal.throwIfAborted();
    const waitMs = this.estimateMs(context);
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
    const cameAsBackground = isBackground(context);
    return new Promise((resolve, reject) => {
      let deadline: NodeJS.Timeout | undefined;
      const leave = () => {
        signal.removeEventListener('abort', abort);
        stopListening?.();
        clearTimeout(deadline);
        this.remove(fairnessKey, waiting);
        this.schedule();
      };
      const abort = () => {
        leave();
        reject(signal.reason as Error);
      };
      const waiting: WaitingRequest = {
        get background() {
          return cameAsBackground && isBackground(context);
        },
        end: (turn) => {
          leave();
          resolve(turn);
        },
      };
      // The deadline can change while it waits, and other calls can delay its turn.
      const checkDeadline = () => {
        const leftMs = timeLeftMs(context);
        if (leftMs <= 0) waiting.end({ kind: 'busy', waitMs: Math.max(1_000, this.estimateMs(context)) });
        else deadline = setTimeout(checkDeadline, Math.min(leftMs, 2 ** 31 - 1));
      };
      signal.addEventListener('abort', abort, { once: true });
      const others = this.waitingByKey.get(fairnessKey);
      if (others) others.push(waiting);
      else this.waitingByKey.set(fairnessKey, [waiting]);
      if (cameAsBackground) this.background.add(waiting);
      const stopListening = cameAsBackground ? context.onForeground?.(() => this.schedule()) : undefined;
      checkDeadline();
      this.schedule();
    });
  }

  private schedule(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const next = this.next();
    if (!next) return;
    this.timer = setTimeout(() => this.serve(), Math.ceil(this.waitMsOf(next.request)));
  }

  private serve(): void {
    for (let next = this.next(); next && this.waitMsOf(next.request) === 0; next = this.next()) {
      const { fairnessKey, request } = next;
      this.budget.spend();
      request.end({ kind: 'go' });
      const remaining = this.waitingByKey.get(fairnessKey);
      if (!remaining) continue;
      this.waitingByKey.delete(fairnessKey);
      this.waitingByKey.set(fairnessKey, remaining);
    }
    this.schedule();
  }

  /** The request that is served next. */
  private next(): { fairnessKey: object; request: WaitingRequest } | undefined {
    for (const background of [false, true]) {
      for (const [fairnessKey, waiting] of this.waitingByKey) {
        const request = waiting.find((each) => each.background === background);
        if (request) return { fairnessKey, request };
      }
    }
    return undefined;
  }

  private waitMsOf({ background }: WaitingRequest): number {
    return this.budget.waitMs(1 + (background ? this.budget.reserve() : 0));
  }

  private count(waiting: readonly WaitingRequest[], background: boolean): number {
    if (this.background.size === 0) return background ? 0 : waiting.length;
    let count = 0;
    for (const request of waiting) if (request.background === background) count += 1;
    return count;
  }

  private remove(fairnessKey: object, waiting: WaitingRequest): void {
    this.background.delete(waiting);
    const remaining = this.waitingByKey.get(fairnessKey)?.filter((other) => other !== waiting) ?? [];
    if (remaining.length === 0) this.waitingByKey.delete(fairnessKey);
    else this.waitingByKey.set(fairnessKey, remaining);
  }
}

function timeLeftMs({ deadlineAtMs }: ReadingContext): number {
  return deadlineAtMs - DEADLINE_MARGIN_MS - performance.now();
}

function isBackground({ background }: Requester): boolean {
  return background === true;
}
