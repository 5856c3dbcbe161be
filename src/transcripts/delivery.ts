import type { Upload } from '../domain/transcript.js';
import type { CallPlan, PlannedVideo } from './call-plan.js';
import { CallEnded, type Call } from './call.js';
import {
  count,
  emptySummary,
  failedEntry,
  succeededEntry,
  type Entry,
  type TranscriptsEvent,
} from './transcript-events.js';
import { BUFFER_FULL, Fetching, Slot, TEXT_EVICTED, type FetchingWork, type WaitingEntry } from './fetching.js';
import { CompletionOrder } from './completion-order.js';
import { CachedTextReader } from './cache/cached-text-reader.js';
import { BufferedTexts, type ResponseMemory } from './response/response-memory.js';
import type { CachedOutcome } from './cache/transcript-cache.js';
import type { TranscriptMetrics } from './transcript-metrics.js';
import type { TextForm } from './cache/transcript-text.js';

/** How long the summary waits for the settlement; a slow database must not hold back an answer that is complete. */
const SETTLEMENT_WAIT_MS = 2_000;
/** Nothing outlives the deadline of a call by more than a second: this much, and the time to write it. */
const AFTER_DEADLINE_MAX_MS = 800;

/** `newest-first` waits for the newer entry before it gives a later one; `as-finished` gives each when it is there. */
export type EntryOrder = 'newest-first' | 'as-finished';

/** Quota for planned videos whose texts were evicted since: for the first `granted` of them. */
export interface LateReservation {
  reservation: CallPlan['reservation'];
  granted: number;
}

/** What a delivery has others do, on behalf of its call. */
export interface DeliveryWork extends FetchingWork {
  /**
   * Reserves for videos that the plan counted on as cached and whose texts were evicted since.
   *
   * @throws CallEnded when the call ends first
   */
  reserveEvicted(uploads: readonly Upload[]): Promise<LateReservation>;
  /** Ends a reservation; never rejects. */
  settle(reservation: CallPlan['reservation'], fetched: number): Promise<void>;
  /** Keeps the process alive until this has ended, whether or not anybody reads. */
  track(work: Promise<void>): void;
}

/** The second half of a call: the fetching, which runs by itself, and the events, which wait for it in order. */
export class Delivery {
  /** Counts over the entries that the reader has come to. */
  readonly summary = emptySummary();
  private readonly slots: (Slot | undefined)[];
  /** Of planned videos whose texts were evicted, by video. */
  private readonly evicted = new Map<string, Slot>();
  private readonly settlements: Promise<void>[] = [];
  private readonly buffered: BufferedTexts;
  private readonly fetching: Fetching;
  private readonly planned: CachedTextReader;
  private reading = false;
  /** The text that was passed on last: it may still be on its way when the next one is asked for. */
  private passedOn: Buffer | undefined;

  /**
   * @param form in which the texts go out
   * @param fetchesAtOnce how many videos of one call are under way at a time
   */
  constructor(
    private readonly plan: CallPlan,
    private readonly call: Call,
    private readonly form: TextForm,
    private readonly work: DeliveryWork,
    fetchesAtOnce: number,
    memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
  ) {
    this.buffered = new BufferedTexts(memory);
    this.slots = plan.videos.map(({ upload, outcome }) => (outcome ? undefined : new Slot(upload)));
    for (const video of plan.videos) this.pin(video);
    this.planned = new CachedTextReader(plan.videos, form, (wanted) => work.texts(wanted, form), this.buffered);
    this.fetching = new Fetching(call, form, this.buffered, work, fetchesAtOnce);
    call.signal.addEventListener('abort', () => {
      // Nobody will read: the caller left before the first event was asked for.
      if (!this.reading) this.close();
    });
    const missing = this.slots.filter((slot) => slot !== undefined);
    this.settleAfter(this.fetching.fill(missing), plan.reservation);
  }

  /** The channel, each entry in the order asked for as its turn comes, and the summary. Throws only for a bug. */
  async *events(order: EntryOrder): AsyncGenerator<TranscriptsEvent, void, undefined> {
    this.reading = true;
    try {
      yield { type: 'channel', channel: this.plan.channel };
      for await (const entry of order === 'newest-first' ? this.newestFirst() : this.asTheyFinish()) {
        count(this.summary, entry);
        this.metrics.entry(entry);
        yield { type: 'result', entry };
        this.releaseAfter(entry);
      }
      await this.settledOrLate();
      this.call.finish();
      yield { type: 'summary', summary: this.summary };
    } finally {
      this.close();
    }
  }

  private async *newestFirst(): AsyncGenerator<Entry> {
    for (const [index, video] of this.plan.videos.entries()) {
      const slot = this.slots[index];
      // A text that was sent is not held until the end of the call.
      this.slots[index] = undefined;
      const entry = slot ?? (await this.known(video));
      yield entry instanceof Slot ? await this.awaiting(entry, entry.entry) : entry;
    }
  }

  /** First what is known already, then each fetch when it is done. */
  private async *asTheyFinish(): AsyncGenerator<Entry> {
    const finishing = new CompletionOrder<WaitingEntry>();
    for (const [index, slot] of this.slots.entries()) {
      this.slots[index] = undefined;
      if (slot) finishing.add(slot.entry);
    }
    for (const video of this.plan.videos) {
      if (!video.outcome) continue;
      const entry = await this.known(video);
      if (entry instanceof Slot) finishing.add(entry.entry);
      else yield entry;
    }
    for (const next of finishing) yield await this.awaiting('any', next);
  }

  private async awaiting(awaited: Slot | 'any', waiting: Promise<WaitingEntry>): Promise<Entry> {
    this.fetching.awaited = awaited;
    const entry = await waiting;
    this.fetching.awaited = undefined;
    return this.fetching.open(entry);
  }

  /** The entry of a video that the plan knew; a slot when its text was evicted since and is fetched. */
  private known(video: PlannedVideo): Entry | Promise<Entry | Slot> {
    const { upload, outcome } = video;
    if (!outcome) throw new Error('An entry was asked for twice.');
    if (!outcome.ok) return failedEntry(upload, outcome.details, outcome.failure);
    const { transcript, details } = outcome;
    const bytes = transcript[this.form];
    if (!bytes) return this.plannedEntry(video, outcome);
    unpin(video);
    return succeededEntry(upload, details, { bytes, jsonBytes: transcript.jsonBytes, crc32: transcript.crc32 }, true);
  }

  private async plannedEntry(video: PlannedVideo, outcome: CachedOutcome & { ok: true }): Promise<Entry | Slot> {
    const { upload } = video;
    const { json, jsonBytes } = outcome.transcript;
    if (!this.buffered.mayRead(jsonBytes)) return failedEntry(upload, outcome.details, BUFFER_FULL);
    const text = await this.planned.take(upload.videoId);
    unpin(video);
    if (json) this.buffered.release(json);
    if (text) return succeededEntry(upload, outcome.details, text, true);
    if (!this.evicted.has(upload.videoId)) await this.fetchEvicted(upload);
    const slot = this.evicted.get(upload.videoId);
    if (!slot) throw new Error('An evicted text has no place in the response.');
    this.evicted.delete(upload.videoId);
    return slot;
  }

  /** A text that was evicted is seldom the only one: all that are missing by now are reserved for and fetched together. */
  private async fetchEvicted(first: Upload): Promise<void> {
    const videoIds = await this.planned.evicted();
    videoIds.add(first.videoId);
    const slots = this.plan.videos.flatMap(({ upload }) =>
      videoIds.has(upload.videoId) && !this.evicted.has(upload.videoId) ? [new Slot(upload)] : [],
    );
    for (const slot of slots) this.evicted.set(slot.upload.videoId, slot);
    const reserving = this.work.reserveEvicted(slots.map(({ upload }) => upload));
    const settling = reserving.then(
      async ({ reservation, granted }) => {
        for (const slot of slots.slice(granted)) slot.fail(TEXT_EVICTED);
        await this.work.settle(reservation, await this.fetching.fill(slots.slice(0, granted)));
      },
      (error: unknown) => {
        for (const slot of slots)
          if (error instanceof CallEnded) slot.fail({ code: 'upstream_timeout' });
          else slot.reject(error);
      },
    );
    this.settlements.push(settling);
    this.work.track(settling);
  }

  private settleAfter(fetching: Promise<number>, reservation: CallPlan['reservation']): void {
    const { work } = this;
    const settling = fetching.then((fetched) => work.settle(reservation, fetched));
    this.settlements.push(settling);
    work.track(settling);
  }

  private async settledOrLate(): Promise<void> {
    const untilDeadlineMs = this.call.deadlineAtMs + AFTER_DEADLINE_MAX_MS - performance.now();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(0, Math.min(SETTLEMENT_WAIT_MS, untilDeadlineMs)));
    });
    await Promise.race([Promise.all(this.settlements), late]);
    clearTimeout(timer);
  }

  /** Counts a text that the plan brought along; one that there is no room for is read again on its turn. */
  private pin(video: PlannedVideo): void {
    if (!video.outcome?.ok) return;
    const text = video.outcome.transcript[this.form] ?? video.outcome.transcript.json;
    if (!text) return;
    if (this.buffered.mayPin(text)) this.buffered.hold(text, 'passing');
    else unpin(video);
  }

  private releaseAfter(entry: Entry): void {
    if (this.passedOn) this.buffered.release(this.passedOn);
    this.passedOn = entry.ok ? entry.transcript.bytes : undefined;
  }

  /** Nobody reads any more: what waits is released, though the settlement may go on for a while. */
  private close(): void {
    this.buffered.close();
    this.slots.length = 0;
    this.evicted.clear();
    for (const video of this.plan.videos) unpin(video);
  }
}

/** Takes the text out of a plan, so that the plan does not keep it in memory. */
function unpin(video: PlannedVideo): void {
  const { outcome } = video;
  if (!outcome?.ok || !(outcome.transcript.json ?? outcome.transcript.deflated)) return;
  const { jsonBytes, crc32 } = outcome.transcript;
  video.outcome = { ...outcome, transcript: { jsonBytes, crc32 } };
}
