import { Injectable } from '@nestjs/common';
import type { Upload } from '../domain/transcript.js';
import { withTimeout } from '../domain/with-timeout.js';
import { CachedEntries } from './cached-entries.js';
import { TranscriptCache } from './cache/transcript-cache.js';
import type { TextForm } from './cache/transcript-text.js';
import { CallEnded } from './call.js';
import { Fetching, Slot, TEXT_EVICTED, VideoFetcher, type WaitingEntry } from './fetching.js';
import { QuotaReservations, type Settle } from './quota-reservations.js';
import { BufferedTexts, ResponseMemory } from './response/response-memory.js';
import { count, emptySummary, withoutText, type Entry, type TranscriptsEvent } from './transcript-events.js';
import { TranscriptMetrics } from './transcript-metrics.js';
import type { CallPlan, PlannedVideo } from './transcript-planner.js';

/** How long the summary waits for the settlement, so that a slow database does not delay a complete response. */
const SETTLEMENT_WAIT_MS = 2_000;
/** No response outlasts its deadline by more than a second: this, and the time to write the summary. */
const AFTER_DEADLINE_MAX_MS = 800;

/** `listed` sends entries in the order of the list; `as-finished` sends each as soon as it is available. */
export type EntryOrder = 'listed' | 'as-finished';

/** Starts the deliveries of plans. */
@Injectable()
export class TranscriptDelivery {
  constructor(
    private readonly cache: TranscriptCache,
    private readonly fetcher: VideoFetcher,
    private readonly reservations: QuotaReservations,
    private readonly memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
  ) {}

  /**
   * Starts to fetch what the plan lacks. The fetching never waits for the reader, and the reservation is settled when it
   * ends, whether or not the events are read.
   *
   * @param form the form in which the texts are sent
   * @param settle called for each reservation of the call when its fetching has ended
   */
  start(plan: CallPlan, form: TextForm, settle: Settle = this.reservations.settle): Delivery {
    const buffered = new BufferedTexts(this.memory);
    const cached = new CachedEntries(plan, form, buffered, this.cache);
    const fetching = new Fetching(plan, form, buffered, this.fetcher);
    return new Delivery(plan, buffered, cached, fetching, this.reservations, settle, this.metrics);
  }
}

/** The second half of a call, which cannot fail as a whole: a failure is an entry. */
export class Delivery {
  /** Counts of the entries that were yielded so far. */
  readonly summary = emptySummary();
  /** The slots of the videos that the plan lacks, until they are sent. */
  private readonly slots: Map<PlannedVideo, Slot>;
  /** How often each video occurs in the response, for those that occur more than once. */
  private readonly repeated: ReadonlyMap<string, number>;
  /** Slots of planned videos whose texts were evicted, by video. */
  private readonly evicted = new Map<string, Slot>();
  private readonly settlements: Promise<void>[] = [];
  private reading = false;
  /** The text that was yielded last, which may not be written yet when the next one is requested. */
  private lastYielded: Buffer | undefined;

  constructor(
    private readonly plan: CallPlan,
    private readonly buffered: BufferedTexts,
    private readonly cached: CachedEntries,
    private readonly fetching: Fetching,
    private readonly reservations: QuotaReservations,
    private readonly settle: Settle,
    private readonly metrics: TranscriptMetrics,
  ) {
    const missing = plan.videos.filter(({ outcome }) => !outcome);
    this.slots = new Map(missing.map((video) => [video, new Slot(video.upload)]));
    this.repeated = repeatedVideos(plan);
    plan.call.signal.addEventListener('abort', () => {
      // The caller disconnected before the first event was read, so that `events` never closes.
      if (!this.reading) this.close();
    });
    this.track(this.fetchMissing([...this.slots.values()]));
  }

  /** Videos that failed within the service: not requested before the deadline, text evicted, or response buffer full. */
  get givenUp(): ReadonlySet<string> {
    return this.fetching.givenUp;
  }

  /** The header of the list, the entries in the given order, and the summary. Throws only for a bug. */
  async *events(order: EntryOrder): AsyncGenerator<TranscriptsEvent, void, undefined> {
    this.reading = true;
    try {
      yield this.plan.header;
      for await (const entry of order === 'listed' ? this.listed() : this.asFinished()) {
        count(this.summary, entry);
        // A job counts the entries that it stores.
        if (!this.plan.call.background) this.metrics.entry(entry);
        yield { type: 'result', entry };
        this.releaseAfter(entry);
      }
      await this.settledOrLate();
      this.plan.call.finish();
      yield { type: 'summary', summary: this.summary };
    } finally {
      this.close();
    }
  }

  private async *listed(): AsyncGenerator<Entry> {
    const sent = new Map<string, Entry>();
    for (const video of this.plan.order) {
      const { videoId } = video.upload;
      const first = sent.get(videoId);
      const entry = first ? await this.fetching.repeat(first) : await this.entry(video);
      if (!first && this.repeated.has(videoId)) sent.set(videoId, withoutText(entry));
      yield entry;
    }
  }

  private async entry(video: PlannedVideo): Promise<Entry> {
    const slot = this.takeSlot(video);
    const entry = slot ? undefined : await this.cached.entry(video);
    if (entry) return entry;
    const awaited = slot ?? (await this.slotOfEvicted(video.upload));
    return this.fetched(awaited, awaited.entry);
  }

  /** First the cached entries, then each fetched one as it finishes; the further entries of a video follow the first. */
  private async *asFinished(): AsyncGenerator<Entry> {
    for await (const entry of this.eachAsFinished()) {
      yield entry;
      const occurrences = this.repeated.get(entry.videoId) ?? 1;
      for (let repetition = 1; repetition < occurrences; repetition++)
        yield entry.ok ? { ...entry, cached: true } : entry;
    }
  }

  private async *eachAsFinished(): AsyncGenerator<Entry> {
    const finishing = new CompletionOrder<WaitingEntry>();
    const cached = this.plan.videos.filter((video) => {
      const slot = this.takeSlot(video);
      if (slot) finishing.add(slot.entry);
      return !slot;
    });
    for (const video of cached) {
      const entry = await this.cached.entry(video);
      if (entry) yield entry;
      else finishing.add((await this.slotOfEvicted(video.upload)).entry);
    }
    for (const next of finishing) yield await this.fetched('any', next);
  }

  /** Removes the slot from the delivery, so that a text that was sent is not retained until the end of the call. */
  private takeSlot(video: PlannedVideo): Slot | undefined {
    const slot = this.slots.get(video);
    this.slots.delete(video);
    return slot;
  }

  private async fetched(awaited: Slot | 'any', waiting: Promise<WaitingEntry>): Promise<Entry> {
    this.fetching.awaited = awaited;
    const entry = await waiting;
    this.fetching.awaited = undefined;
    return this.fetching.open(entry);
  }

  /** An eviction seldom affects one text only: the first starts the fetching of all texts that are missing by then. */
  private async slotOfEvicted(upload: Upload): Promise<Slot> {
    if (!this.evicted.has(upload.videoId)) {
      const videoIds = await this.cached.evicted();
      videoIds.add(upload.videoId);
      const uploads = this.plan.videos.map((video) => video.upload);
      const slots = uploads
        .filter(({ videoId }) => videoIds.has(videoId) && !this.evicted.has(videoId))
        .map((one) => new Slot(one));
      for (const slot of slots) this.evicted.set(slot.upload.videoId, slot);
      this.track(this.fetchEvicted(slots));
    }
    const slot = this.evicted.get(upload.videoId);
    if (!slot) throw new Error('An evicted text has no place in the response.');
    this.evicted.delete(upload.videoId);
    return slot;
  }

  private async fetchMissing(slots: readonly Slot[]): Promise<void> {
    const fetched = await this.fetching.fill(slots);
    await this.settle(this.plan.reservation, fetched);
  }

  /** The plan's reservation does not cover these videos, and none is fetched for free: they get a reservation of their own. */
  private async fetchEvicted(slots: readonly Slot[]): Promise<void> {
    const { call, payer, resource } = this.plan;
    try {
      await call.within(this.cached.delete(slots.map(({ upload }) => upload.videoId)));
      const { reservation, granted } = await this.reservations.reserveUpTo(slots.length, payer, resource, call);
      for (const slot of slots.slice(granted)) this.fetching.giveUp(slot, TEXT_EVICTED);
      const fetched = await this.fetching.fill(slots.slice(0, granted));
      await this.settle(reservation, fetched);
    } catch (error) {
      for (const slot of slots)
        if (error instanceof CallEnded) this.fetching.giveUp(slot, { code: 'upstream_timeout' });
        else slot.reject(error);
    }
  }

  private track(settlement: Promise<void>): void {
    this.settlements.push(this.reservations.track(settlement));
  }

  private async settledOrLate(): Promise<void> {
    const untilDeadlineMs = this.plan.call.deadlineAtMs + AFTER_DEADLINE_MAX_MS - performance.now();
    await withTimeout(Promise.all(this.settlements), Math.min(SETTLEMENT_WAIT_MS, untilDeadlineMs));
  }

  private releaseAfter(entry: Entry): void {
    if (this.lastYielded) this.buffered.release(this.lastYielded);
    this.lastYielded = entry.ok ? entry.transcript.bytes : undefined;
  }

  /** Releases the buffered texts once nothing reads them any more; the settlement may still be running. */
  private close(): void {
    this.buffered.close();
    this.slots.clear();
    this.evicted.clear();
    this.cached.close();
  }
}

function repeatedVideos({ videos, order }: CallPlan): Map<string, number> {
  const occurrences = new Map<string, number>();
  if (order.length === videos.length) return occurrences;
  for (const { upload } of order) occurrences.set(upload.videoId, (occurrences.get(upload.videoId) ?? 0) + 1);
  for (const [videoId, count] of occurrences) if (count === 1) occurrences.delete(videoId);
  return occurrences;
}

/** Iterates over promises in the order in which they settle. */
export class CompletionOrder<T> {
  private readonly settled: Promise<T>[] = [];
  private readonly awaited: ((value: Promise<T>) => void)[] = [];
  private added = 0;

  add(promise: Promise<T>): void {
    this.added++;
    const finish = (): void => {
      const next = this.awaited.shift();
      if (next) next(promise);
      else this.settled.push(promise);
    };
    promise.then(finish, finish);
  }

  *[Symbol.iterator](): Generator<Promise<T>> {
    for (let yielded = 0; yielded < this.added; yielded++) {
      yield this.settled.shift() ?? new Promise<T>((resolve) => this.awaited.push(resolve));
    }
  }
}
