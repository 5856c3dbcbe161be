import { setImmediate as turn } from 'node:timers/promises';
import type { Includable, Upload, VideoFailure } from '../../domain/transcript.js';
import { withTimeout } from '../../domain/waiting.js';
import type { CachedOutcome } from '../cache/transcript-cache.js';
import type { CallPlan, PlannedVideo } from '../call-plan.js';
import type { Summary } from '../dto/transcripts-response.dto.js';
import { CallEnded } from '../call.js';
import { inChunks } from '../formats/chunks.js';
import type { VideoFetcher } from './video-fetcher.js';
import {
  addToSummary,
  emptySummary,
  entryOf,
  failedEntry,
  type Entry,
  type MetadataForm,
  type TranscriptsEvent,
} from './transcript-events.js';

/** How long the summary waits for the settlement, so that a slow database does not delay a complete response. */
const SETTLEMENT_WAIT_MS = 2_000;
/** No response outlasts its deadline by more than a second: this, and the time to write the summary. */
const AFTER_DEADLINE_MAX_MS = 800;

const BUFFER_FULL: VideoFailure = {
  code: 'upstream_failure',
  message: 'The response buffer of this call is full. Read the response faster or request fewer videos, then retry.',
};

/** Entries of cached videos that are made at a stretch: each finds the chapters of a description of up to 5,000 characters. */
const ENTRIES_PER_TURN = 10;

/** Ends what waits for its first request. */
const FULL = new Error('The response buffer of the call is full.');

/** `listed` sends entries in the order of the list; `as-finished` sends each as soon as it is available. */
type EntryOrder = 'listed' | 'as-finished';

/** What differs between the response to a call and the results of a job. */
export interface DeliveryRules {
  /** Called when the fetching has ended, with the number of transcripts to pay for. */
  settle(fetched: number): Promise<void>;
  onEntry(entry: Entry): void;
  /** Called with each outcome that has a text, as it is cached. */
  onText?(upload: Upload, outcome: CachedOutcome & { ok: true }): void;
  /** The failure of a video whose reading met an unexpected error. Throws the error when it is for the reader. */
  onBug(upload: Upload, error: unknown): VideoFailure;
}

/**
 * The second half of a call, which cannot fail as a whole: a failure is an entry. All missing videos wait for
 * the platform from the start; the fetching never waits for the reader, so that the settlement does not either. A text
 * that was fetched is charged and held until it is sent, so that no charged transcript is missing in the response.
 */
export class Delivery {
  /** Counts of the entries that were yielded so far. */
  readonly summary: Summary;
  /** Videos that failed within the service: not requested before the deadline, or the response buffer was full. */
  readonly givenUp = new Set<string>();
  private readonly form: MetadataForm;
  /** The entries of the videos that the plan lacks, until they are sent. */
  private readonly fetching = new Map<PlannedVideo, Promise<Entry>>();
  /** Of the videos that are being fetched: ended with the call. */
  private readonly open = new Set<AbortController>();
  /** Of those that wait for their first request: given up when the response buffer is full. */
  private readonly waiting = new Set<AbortController>();
  /** What `start` returned. */
  private settled: Promise<void> = Promise.resolve();
  private charged = 0;
  private reading = false;

  constructor(
    readonly plan: CallPlan,
    private readonly fetcher: Pick<VideoFetcher, 'fetch'>,
    private readonly rules: DeliveryRules,
  ) {
    const { sinceFound, header, include = [], chunkSeconds } = plan;
    const needed: readonly Includable[] = chunkSeconds === undefined ? include : [...include, 'chapters'];
    this.form = { withChannel: header.type !== 'channel', include: needed };
    this.summary = { ...emptySummary(), ...(sinceFound !== undefined && { sinceFound }) };
  }

  /** Starts to fetch what the plan lacks. Resolves when that has ended and is settled, whether or not the events are read. */
  start(): Promise<void> {
    const { videos, held, call } = this.plan;
    for (const video of videos) if (!video.outcome) this.fetching.set(video, this.fetch(video.upload));
    // A bug is thrown to the reader when it reaches its entry. Nothing here keeps the entries.
    const fetches = [...this.fetching.values()].map((entry) => entry.then(() => undefined));
    this.settled = Promise.allSettled(fetches).then(() => this.rules.settle(this.charged));
    // When the call ends before the first event is read, the end of `events` may never be reached.
    const ended = (): void => {
      for (const fetch of this.open) fetch.abort(call.signal.reason);
      if (!this.reading) held.close();
    };
    if (call.signal.aborted) ended();
    else call.signal.addEventListener('abort', ended, { once: true });
    return this.settled;
  }

  /** The header of the list, the entries in the given order, and the summary. Throws only for a bug. */
  async *events(order: EntryOrder): AsyncGenerator<TranscriptsEvent, void, undefined> {
    for await (const batch of this.batches(order)) yield* batch;
  }

  /** The same events, those that are available together in one batch. */
  batches(order: EntryOrder): AsyncGenerator<readonly TranscriptsEvent[], void, undefined> {
    const { chunkSeconds, include } = this.plan;
    if (chunkSeconds === undefined) return this.ownBatches(order);
    return inChunks(this.ownBatches(order), chunkSeconds, include?.includes('chapters') ?? false);
  }

  private async *ownBatches(order: EntryOrder): AsyncGenerator<readonly TranscriptsEvent[], void, undefined> {
    this.reading = true;
    const { header, call } = this.plan;
    try {
      yield [header];
      for await (const entries of this.entries(order)) {
        for (const entry of entries) {
          addToSummary(this.summary, entry);
          this.rules.onEntry(entry);
        }
        yield entries.map((entry) => ({ type: 'result', entry }));
      }
      const untilDeadlineMs = call.deadlineAtMs + AFTER_DEADLINE_MAX_MS - performance.now();
      await withTimeout(this.settled, Math.min(SETTLEMENT_WAIT_MS, untilDeadlineMs));
      call.finish();
      yield [{ type: 'summary', summary: this.summary }];
    } finally {
      // Nothing reads the texts any more; the fetching and the settlement may still be running.
      this.plan.held.close();
      this.fetching.clear();
    }
  }

  /** The further entries of a video cost nothing. */
  private async *entries(order: EntryOrder): AsyncGenerator<Entry[]> {
    const { videos, order: listed } = this.plan;
    const sent = new Set<PlannedVideo>();
    for await (const batch of order === 'listed' ? runs(listed) : this.asFinished()) {
      const entries: Entry[] = [];
      for (const video of batch) {
        const { upload, outcome } = video;
        const entry = outcome ? this.entryOf(upload, outcome, true) : await this.fetching.get(video);
        if (!entry) throw new Error('The entry was sent already.');
        entries.push(entry.ok && sent.has(video) ? { ...entry, cached: true } : entry);
        sent.add(video);
        if (entries.length % ENTRIES_PER_TURN === 0) await turn();
      }
      yield entries;
      // When a video is listed twice, all texts are held until the end.
      if (listed.length === videos.length) for (const video of batch) this.release(video, entries);
    }
  }

  /** First the cached videos, then each fetched one as it finishes, as often as it is listed. */
  private async *asFinished(): AsyncGenerator<PlannedVideo[]> {
    const { order } = this.plan;
    yield order.filter(({ outcome }) => outcome);
    for await (const finished of inOrderOfCompletion(this.fetching)) yield order.filter((video) => video === finished);
  }

  /** Rejects only for a bug. */
  private async fetch(upload: Upload): Promise<Entry> {
    const { call } = this.plan;
    const { deadlineAtMs, organizationId, fairnessKey, background } = call;
    if (!this.plan.held.mayFetch) return this.giveUp(upload, BUFFER_FULL);
    const fetch = new AbortController();
    this.open.add(fetch);
    this.waiting.add(fetch);
    const onRequest = (): void => void this.waiting.delete(fetch);
    try {
      const context = { signal: fetch.signal, deadlineAtMs, organizationId, fairnessKey, background, onRequest };
      const { outcome, own } = await this.fetcher.fetch(upload, this.plan, context);
      if (outcome.ok) {
        if (own) this.charged++;
        this.plan.held.addFetched(outcome.transcript.deflated);
        if (!this.plan.held.mayFetch) for (const each of this.waiting) each.abort(FULL);
      }
      return this.entryOf(upload, outcome, !own);
    } catch (error) {
      if (error === FULL) return this.giveUp(upload, BUFFER_FULL);
      if (error instanceof CallEnded)
        return this.waiting.has(fetch)
          ? this.giveUp(upload, { code: 'upstream_timeout' })
          : failedEntry(upload, { code: 'upstream_timeout' }, this.form);
      return failedEntry(upload, this.rules.onBug(upload, error), this.form);
    } finally {
      this.open.delete(fetch);
      this.waiting.delete(fetch);
    }
  }

  private entryOf(upload: Upload, outcome: CachedOutcome, cached: boolean): Entry {
    if (outcome.ok) this.rules.onText?.(upload, outcome);
    return entryOf(upload, outcome, cached, this.form);
  }

  /** The entry of a video that failed for a cause within the service. */
  private giveUp(upload: Upload, failure: VideoFailure): Entry {
    this.givenUp.add(upload.videoId);
    return failedEntry(upload, failure, this.form);
  }

  /** Releases a text that was fetched and sent: it is not retained until the end of the call. */
  private release(video: PlannedVideo, [entry]: readonly Entry[]): void {
    if (this.fetching.delete(video) && entry?.ok) this.plan.held.releaseFetched(entry.transcript.deflated);
  }
}

/** The videos in their order: those whose outcome is known together, each of the others by itself. */
function* runs(videos: readonly PlannedVideo[]): Generator<PlannedVideo[]> {
  let known: PlannedVideo[] = [];
  for (const video of videos) {
    if (video.outcome) known.push(video);
    else {
      yield known;
      yield [video];
      known = [];
    }
  }
  yield known;
}

/** The items in the order in which their work ends. */
export async function* inOrderOfCompletion<T>(work: ReadonlyMap<T, Promise<unknown>>): AsyncGenerator<T> {
  const open = new Map([...work].map(([item, done]) => [item, done.then(() => item)]));
  while (open.size > 0) {
    const item = await Promise.race(open.values());
    open.delete(item);
    yield item;
  }
}
