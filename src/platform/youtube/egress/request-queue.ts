import type { Requester } from '../../video-platform.js';
import { type Line, type QueuedRequest, type Rank, RANKS, START_RANKS, type Waiting } from './line.js';
import type { NotSent } from './upstream-response.js';

/** The part of the slots that background work can have at most, so that a call finds one free. */
const BACKGROUND_SHARE = 0.75;
/** The part of the slots in which calls begin to read lists, which leaves the others to videos that could be served. */
const LISTS_SHARE = 0.5;
/** How often waiting requests are judged again: too late, or waited for by a call in the meantime. */
const REVIEW_MS = 1_000;

/**
 * The only queue to the platform. It holds what starts (channels and videos) in turns by organization, calls before archive
 * jobs; the later requests of what has started go first, so that every video and list that was begun is finished. An attempt
 * that cannot end before the deadline of its call is refused as soon as that is known, and so is a list when the videos that
 * its organization waits for already take until then. Background attempts start when no call can;
 * their requests run in at most three quarters of the slots (at least one).
 *
 * While anything waits, one timer is armed: for the line that opens first, and for the next review.
 */
export class RequestQueue {
  private readonly lines: Line[] = [];
  private readonly begun = new WeakSet<object>();
  private runningCount = 0;
  private runningBackground = 0;
  private timer: NodeJS.Timeout | undefined;
  private reviewedAtMs = 0;

  /**
   * @param slots how many requests run at a time
   * @param now milliseconds of the clock of `deadlineAtMs`
   */
  constructor(
    readonly slots: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  get running(): number {
    return this.runningCount;
  }

  get queued(): number {
    return this.lines.reduce((total, line) => total + line.waiting, 0);
  }

  /** Serves a line, which calls `startNext` whenever it changes. */
  open<T extends Line>(line: T): T {
    this.lines.push(line);
    return line;
  }

  /** Milliseconds until one more attempt of a requester can start. */
  waitMs(line: Line, requester: Requester): number {
    return line.waitMs(isBackground(requester), this.ahead(line, requester));
  }

  /**
   * Runs a request in its turn. Resolves to why it was not sent; rejects with the reason of the caller's signal when it is
   * aborted while the request waits.
   *
   * @param send called at once when it is the request's turn
   */
  async run<T>(line: Line, request: QueuedRequest, send: () => Promise<T>): Promise<T | NotSent> {
    const { context } = request;
    context.signal.throwIfAborted();
    const refusal = line.refusal(request) ?? this.lateness(line, request, this.ahead(line, context));
    if (refusal) return refusal;
    let abort = (): void => undefined;
    const result = new Promise<T | NotSent>((resolve, reject) => {
      const { organizationId, fairnessKey } = context;
      const waiting: Waiting = {
        request,
        requester: { organizationId, fairnessKey },
        rank: this.rankOf(line, request),
        hasWaited: false,
        start: () => resolve(this.runNow(line, waiting, send)),
        refuse: resolve,
      };
      abort = () => {
        this.remove(line, waiting);
        reject(context.signal.reason as Error);
      };
      context.signal.addEventListener('abort', abort, { once: true });
      line.queues[waiting.rank].add(waiting, waiting.requester);
      this.startNext();
      waiting.hasWaited = true;
    });
    return result.finally(() => context.signal.removeEventListener('abort', abort));
  }

  /** Starts the waiting requests that may run now; to be called whenever a line has changed. */
  startNext(): void {
    while (this.runningCount < this.slots && RANKS.some((rank) => this.startOne(rank)));
    for (const line of this.lines) line.noteDemand();
    this.armTimer();
  }

  /** Starts the first request of a rank that one of the lines has. The line is the last one for the next. */
  private startOne(rank: Rank): boolean {
    if (isOfJob(rank) && this.runningBackground >= Math.max(1, Math.floor(this.slots * BACKGROUND_SHARE))) return false;
    for (const [index, line] of this.lines.entries()) {
      const waiting = line.slots.running < line.slots.max ? this.take(line, rank) : undefined;
      if (!waiting) continue;
      this.lines.splice(index, 1);
      this.lines.push(line);
      waiting.start();
      return true;
    }
    return false;
  }

  /** Takes the next of a rank that may start. Refuses what would not end before its deadline. */
  private take(line: Line, rank: Rank): Waiting | undefined {
    const queue = line.queues[rank];
    if (rank === 'call' && line.videos && line.starts >= Math.ceil(LISTS_SHARE * line.slots.max)) return undefined;
    while (queue.size > 0 && (isStarted(rank) || line.startWaitMs(isOfJob(rank)) <= 0)) {
      const waiting = queue.take();
      const lateness = waiting && this.lateness(line, waiting.request, 0, waiting.hasWaited);
      if (waiting && !lateness) return waiting;
      if (lateness) waiting.refuse(lateness);
    }
    return undefined;
  }

  private async runNow<T>(line: Line, { request, rank }: Waiting, send: () => Promise<T>): Promise<T> {
    const { attempt, context } = request;
    const startedAtMs = this.now();
    if (line.videos) this.begun.add(context.fairnessKey);
    this.count(line, rank, 1);
    line.begin(request);
    attempt.started = true;
    attempt.sentAtMs = startedAtMs;
    try {
      return await send();
    } finally {
      attempt.slotSeconds += (this.now() - startedAtMs) / 1_000;
      this.count(line, rank, -1);
      line.end(request);
      this.startNext();
    }
  }

  private count(line: Line, rank: Rank, one: 1 | -1): void {
    this.runningCount += one;
    if (isOfJob(rank)) this.runningBackground += one;
    line.slots.running += one;
    line.running += one;
  }

  private rankOf(line: Line, { attempt, context }: QueuedRequest): Rank {
    if (isBackground(context)) return attempt.started ? 'started-job' : 'job';
    if (attempt.started) return 'started-call';
    return this.hasBegun(line, context) ? 'begun' : 'call';
  }

  /** At most how many attempts start before one more of a requester. */
  private ahead(line: Line, requester: Requester): number {
    const { begun, call, job } = line.queues;
    if (isBackground(requester)) return begun.size + call.size + job.ahead(requester);
    return this.hasBegun(line, requester) ? begun.ahead(requester) : begun.size + call.ahead(requester);
  }

  private hasBegun({ videos }: Line, { fairnessKey }: Requester): boolean {
    return videos !== undefined && this.begun.has(fairnessKey);
  }

  /** Why an attempt is not started that would have to wait for some others. @param hasWaited whether it waited until now */
  private lateness(line: Line, { attempt, context }: QueuedRequest, ahead: number, hasWaited = false): NotSent | null {
    if (attempt.started) return null;
    const videosMs = line.videos && context.forVideos ? line.videos.organizationWaitMs(context.organizationId) : 0;
    const waitMs = line.waitMs(isBackground(context), ahead) + videosMs;
    const leftMs = context.deadlineAtMs - this.now();
    if ((waitMs === 0 && !hasWaited) || waitMs + line.slotSeconds * 1_000 <= leftMs) return null;
    return { kind: 'busy', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) };
  }

  /** Judges what waits again: a request of a job that a call waits for too is the call's, and others came before it. */
  private review(line: Line): void {
    for (const waiting of [...line.queues['started-job'].inTurn(), ...line.queues.job.inTurn()]) {
      if (isBackground(waiting.request.context)) continue;
      this.remove(line, waiting);
      waiting.rank = this.rankOf(line, waiting.request);
      line.queues[waiting.rank].add(waiting, waiting.requester);
    }
    let ahead = 0;
    for (const waiting of START_RANKS.flatMap((rank) => [...line.queues[rank].inTurn()])) {
      const lateness = this.lateness(line, waiting.request, ahead, true);
      if (!lateness) ahead += 1;
      else {
        this.remove(line, waiting);
        waiting.refuse(lateness);
      }
    }
  }

  private armTimer(): void {
    clearTimeout(this.timer);
    const waiting = this.lines.filter((line) => line.waiting > 0);
    const nowMs = this.now();
    if (waiting.length === 0) this.reviewedAtMs = nowMs;
    if (waiting.length === 0) return;
    const openMs = waiting.flatMap((line) =>
      START_RANKS.filter((rank) => line.queues[rank].size > 0).map((rank) => line.startWaitMs(isOfJob(rank))),
    );
    // Armed again after each request, so that it counts from the last review.
    const reviewMs = Math.max(0, this.reviewedAtMs + REVIEW_MS - nowMs);
    const firstMs = openMs.reduce((first, ms) => (ms > 0 ? Math.min(first, ms) : first), reviewMs);
    this.timer = setTimeout(() => {
      if (this.now() - this.reviewedAtMs >= REVIEW_MS) {
        this.reviewedAtMs = this.now();
        for (const line of waiting) this.review(line);
      }
      this.startNext();
    }, Math.ceil(firstMs));
  }

  /** Without effect on a request that runs. */
  private remove(line: Line, waiting: Waiting): void {
    line.queues[waiting.rank].remove(waiting, waiting.requester);
    if (this.queued === 0) clearTimeout(this.timer);
  }
}

function isStarted(rank: Rank): boolean {
  return rank === 'started-call' || rank === 'started-job';
}

function isOfJob(rank: Rank): boolean {
  return rank === 'started-job' || rank === 'job';
}

function isBackground({ background }: Requester): boolean {
  return background === true;
}
