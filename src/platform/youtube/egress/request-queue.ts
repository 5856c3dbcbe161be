import type { ReadingContext, Requester } from '../../video-platform.js';
import type { Attempt } from './attempt.js';
import { TurnQueue } from './turn-queue.js';
import type { NotSent } from './upstream-response.js';

/** The part of the slots that background work can have at most, so that a call finds one free. */
const BACKGROUND_SHARE = 0.75;
/** How often waiting requests are judged again: too late, or waited for by a call in the meantime. */
const REVIEW_MS = 1_000;
/**
 * The weights of a longer and of a shorter attempt in the time that an attempt takes: it is rather too short, since what was
 * refused in vain is lost, and what waits in vain is refused at a later review.
 */
const LONGER_WEIGHT = 0.03;
const SHORTER_WEIGHT = 0.3;
/** So many attempts make the time count in full: the first ones of a process are slow. */
const ATTEMPTS_KNOWN = 32;

/** What an egress allows for one use now. */
export interface Gate {
  /** Milliseconds until an attempt may start; 0 for now, Infinity until `RequestQueue.startNext` is called. */
  startWaitMs(background: boolean): number;
  /** Milliseconds until the rates let an attempt start after some others. */
  paceMs(background: boolean, ahead: number): number;
  /** Why nothing is sent for an attempt now; null when requests are sent or wait. */
  refusal(request: QueuedRequest): NotSent | null;
  begin(request: QueuedRequest): void;
  end(request: QueuedRequest): void;
}

export interface QueuedRequest {
  readonly kind: string;
  readonly attempt: Attempt;
  readonly context: ReadingContext;
}

/** The requests of an egress that run, for all of its uses. */
export interface EgressSlots {
  readonly max: number;
  running: number;
}

/** The requests of one use of an egress. */
export class Line {
  /** Of attempts that have started: without them, what was sent before was in vain. */
  readonly continued = { calls: new Set<Waiting>(), jobs: new Set<Waiting>() };
  /** `begun`: of calls that have begun to read their list. */
  readonly starts = {
    begun: new TurnQueue<Waiting>(),
    calls: new TurnQueue<Waiting>(),
    jobs: new TurnQueue<Waiting>(),
  };
  running = 0;
  private attemptSeconds = 0;
  private attempts = 0;

  constructor(
    readonly gate: Gate,
    readonly slots: EgressSlots,
    /** Of lists: where the videos that they name wait. */
    readonly videos?: Line,
  ) {}

  /** Seconds of a slot that an attempt takes; less while few have ended. */
  get slotSeconds(): number {
    return this.attemptSeconds * Math.min(1, this.attempts / ATTEMPTS_KNOWN);
  }

  get waiting(): number {
    const { continued, starts } = this;
    return continued.calls.size + continued.jobs.size + starts.begun.size + starts.calls.size + starts.jobs.size;
  }

  /** Milliseconds until the slots and the rates let an attempt start after some others. */
  waitMs(background: boolean, ahead: number): number {
    return Math.max(this.gate.paceMs(background, ahead), (ahead / this.slots.max) * this.slotSeconds * 1_000);
  }

  /** Milliseconds until all that an organization waits for has ended. */
  organizationWaitMs(organizationId: string): number {
    const { calls } = this.starts;
    const ahead = calls.aheadOf(organizationId, calls.sizeOf(organizationId));
    return ahead === 0 ? 0 : this.waitMs(false, ahead) + this.slotSeconds * 1_000;
  }

  /** Learns from an attempt how long one takes. */
  learn(seconds: number): void {
    const weight = seconds > this.attemptSeconds ? LONGER_WEIGHT : SHORTER_WEIGHT;
    this.attemptSeconds += (seconds - this.attemptSeconds) * (this.attempts === 0 ? 1 : weight);
    this.attempts += 1;
  }
}

interface Waiting {
  readonly request: QueuedRequest;
  readonly requester: Requester;
  hasWaited: boolean;
  background: boolean;
  readonly begun: boolean;
  readonly start: () => void;
  readonly refuse: (reason: NotSent) => void;
}

/**
 * The only queue to the platform. It holds what starts (channels and videos) in turns by organization, calls before archive
 * jobs; the later requests of what has started go first, so that every video and list that was begun is finished. An attempt
 * that cannot end before the deadline of its call is refused as soon as that is known, and so is a list when the videos that
 * its organization waits for already take until then. Background attempts start when no call can;
 * their requests run in at most three quarters of the slots (at least one).
 *
 * While anything waits, one timer is armed: for the gate that opens first, and for the next review.
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

  open(gate: Gate, slots: EgressSlots, videos?: Line): Line {
    const line = new Line(gate, slots, videos);
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
    const refusal = line.gate.refusal(request) ?? this.lateness(line, request, this.ahead(line, context));
    if (refusal) return refusal;
    let abort = (): void => undefined;
    const result = new Promise<T | NotSent>((resolve, reject) => {
      const { organizationId, fairnessKey } = context;
      const waiting: Waiting = {
        request,
        requester: { organizationId, fairnessKey },
        hasWaited: false,
        background: isBackground(context),
        begun: this.hasBegun(line, context),
        start: () => resolve(this.runNow(line, waiting, send)),
        refuse: resolve,
      };
      abort = () => {
        this.remove(line, waiting);
        reject(context.signal.reason as Error);
      };
      context.signal.addEventListener('abort', abort, { once: true });
      if (request.attempt.started) ofKind(line.continued, waiting.background).add(waiting);
      else startsOf(line, waiting).add(waiting, waiting.requester);
      this.startNext();
      waiting.hasWaited = true;
    });
    return result.finally(() => context.signal.removeEventListener('abort', abort));
  }

  /** Starts the waiting requests that may run now; to be called whenever a gate has changed. */
  startNext(): void {
    while (this.runningCount < this.slots && this.startOne());
    this.armTimer();
  }

  /** Refuses what waits at a line whose gate refuses it. */
  refuseWaiting(line: Line): void {
    for (const waiting of [...line.continued.calls, ...line.continued.jobs, ...startsInTurn(line)]) {
      const refusal = line.gate.refusal(waiting.request);
      if (refusal) this.end(line, waiting, refusal);
    }
  }

  private startOne(): boolean {
    return (
      this.startAt((line) => this.takeContinued(line, false)) ||
      (this.mayRunJob && this.startAt((line) => this.takeContinued(line, true))) ||
      this.startAt((line) => this.takeStart(line, line.starts.begun, false)) ||
      this.startAt((line) => this.takeStart(line, line.starts.calls, false)) ||
      (this.mayRunJob && this.startAt((line) => this.takeStart(line, line.starts.jobs, true)))
    );
  }

  /** Starts the first request that one of the lines has. The line is the last one for the next. */
  private startAt(take: (line: Line) => Waiting | undefined): boolean {
    for (const [index, line] of this.lines.entries()) {
      const waiting = line.waiting > 0 && line.slots.running < line.slots.max ? take(line) : undefined;
      if (!waiting) continue;
      this.lines.splice(index, 1);
      this.lines.push(line);
      waiting.start();
      return true;
    }
    return false;
  }

  private takeContinued(line: Line, background: boolean): Waiting | undefined {
    const continued = ofKind(line.continued, background);
    const [first] = continued;
    if (first) continued.delete(first);
    return first;
  }

  /** Refuses what would not end before its deadline. */
  private takeStart(line: Line, starts: TurnQueue<Waiting>, background: boolean): Waiting | undefined {
    while (starts.size > 0 && line.gate.startWaitMs(background) <= 0) {
      const waiting = starts.take();
      const lateness = waiting && this.lateness(line, waiting.request, 0, waiting.hasWaited);
      if (waiting && !lateness) return waiting;
      if (lateness) waiting.refuse(lateness);
    }
    return undefined;
  }

  private get mayRunJob(): boolean {
    return this.runningBackground < Math.max(1, Math.floor(this.slots * BACKGROUND_SHARE));
  }

  private async runNow<T>(line: Line, { request, background }: Waiting, send: () => Promise<T>): Promise<T> {
    const { attempt, context } = request;
    const startedAtMs = this.now();
    if (line.videos) this.begun.add(context.fairnessKey);
    this.count(line, background, 1);
    line.gate.begin(request);
    attempt.started = true;
    attempt.sentAtMs = startedAtMs;
    try {
      return await send();
    } finally {
      attempt.slotSeconds += (this.now() - startedAtMs) / 1_000;
      this.count(line, background, -1);
      line.gate.end(request);
      this.startNext();
    }
  }

  private count(line: Line, background: boolean, one: 1 | -1): void {
    this.runningCount += one;
    if (background) this.runningBackground += one;
    line.slots.running += one;
    line.running += one;
  }

  /** At most how many attempts start before one more of a requester. */
  private ahead(line: Line, requester: Requester): number {
    const { begun, calls, jobs } = line.starts;
    if (isBackground(requester)) return begun.size + calls.size + jobs.ahead(requester);
    return this.hasBegun(line, requester) ? begun.ahead(requester) : begun.size + calls.ahead(requester);
  }

  private hasBegun(line: Line, { fairnessKey }: Requester): boolean {
    return line.videos !== undefined && this.begun.has(fairnessKey);
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
    for (const waiting of [...line.continued.jobs, ...line.starts.jobs.inTurn()]) {
      if (isBackground(waiting.request.context)) continue;
      const isContinued = line.continued.jobs.has(waiting);
      this.remove(line, waiting);
      waiting.background = false;
      if (isContinued) line.continued.calls.add(waiting);
      else startsOf(line, waiting).add(waiting, waiting.requester);
    }
    let ahead = 0;
    for (const waiting of startsInTurn(line)) {
      const lateness = this.lateness(line, waiting.request, ahead, true);
      if (lateness) this.end(line, waiting, lateness);
      else ahead += 1;
    }
  }

  private armTimer(): void {
    clearTimeout(this.timer);
    const waiting = this.lines.filter((line) => line.waiting > 0);
    const nowMs = this.now();
    if (waiting.length === 0) this.reviewedAtMs = nowMs;
    if (waiting.length === 0) return;
    const gatesMs = waiting.flatMap(({ gate, starts: { begun, calls, jobs } }) => [
      ...(begun.size + calls.size > 0 ? [gate.startWaitMs(false)] : []),
      ...(jobs.size > 0 ? [gate.startWaitMs(true)] : []),
    ]);
    // Armed again after each request, so that it counts from the last review.
    const reviewMs = Math.max(0, this.reviewedAtMs + REVIEW_MS - nowMs);
    const firstMs = gatesMs.reduce((first, ms) => (ms > 0 ? Math.min(first, ms) : first), reviewMs);
    this.timer = setTimeout(() => {
      if (this.now() - this.reviewedAtMs >= REVIEW_MS) {
        this.reviewedAtMs = this.now();
        for (const line of waiting) this.review(line);
      }
      this.startNext();
    }, Math.ceil(firstMs));
  }

  private end(line: Line, waiting: Waiting, reason: NotSent): void {
    this.remove(line, waiting);
    waiting.refuse(reason);
  }

  /** Without effect on a request that runs. */
  private remove(line: Line, waiting: Waiting): void {
    ofKind(line.continued, waiting.background).delete(waiting);
    startsOf(line, waiting).remove(waiting, waiting.requester);
    if (this.queued === 0) clearTimeout(this.timer);
  }
}

function startsOf({ starts }: Line, { background, begun }: Waiting): TurnQueue<Waiting> {
  return !background && begun ? starts.begun : ofKind(starts, background);
}

function startsInTurn({ starts: { begun, calls, jobs } }: Line): Waiting[] {
  return [...begun.inTurn(), ...calls.inTurn(), ...jobs.inTurn()];
}

function ofKind<T>({ calls, jobs }: { calls: T; jobs: T }, background: boolean): T {
  return background ? jobs : calls;
}

function isBackground({ background }: Requester): boolean {
  return background === true;
}
