import { setMaxListeners } from 'node:events';
import { Injectable, Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { NO_DETAILS, type Upload, type VideoDetails, type VideoFailure } from '../domain/transcript.js';
import { inSpan } from '../observability/tracing/tracer.js';
import { VideoPlatform, type ReadingContext } from '../platform/video-platform.js';
import { asCachedOutcome, TranscriptCache, type CachedOutcome } from './cache/transcript-cache.js';
import { deflate, inflate, type SentText, type TextForm, type TranscriptText } from './cache/transcript-text.js';
import { CallEnded } from './call.js';
import type { BufferedTexts } from './response/response-memory.js';
import { SingleFlight } from './single-flight.js';
import { entryError, failedEntry, succeededEntry, type Entry } from './transcript-events.js';
import type { CallPlan } from './transcript-planner.js';

export const TEXT_EVICTED: VideoFailure = {
  code: 'upstream_failure',
  message: 'The cached transcript was evicted during the response. Retry the request.',
};

/** An unexpected error while a job reads a video. */
export const READING_FAILED: VideoFailure = {
  code: 'upstream_failure',
  message: 'The service failed to read this video. Retry later.',
};

export const BUFFER_FULL: VideoFailure = {
  code: 'upstream_failure',
  message: 'The response buffer of this call is full. Read the response faster or request fewer videos, then retry.',
};

interface Fetched {
  outcome: CachedOutcome;
  /** True when this call made the fetch, and so pays for it if it succeeded. */
  own: boolean;
}

/**
 * Videos that one call fetches at a time, for each request that may be sent at a time. A video is not only waiting for the
 * platform: its responses are decompressed, parsed and cached, and meanwhile others use its place among the requests.
 */
const VIDEOS_PER_REQUEST = 1.5;

/** Fetches transcripts; calls that need the same video in the same languages at the same time share one fetch. */
@Injectable()
export class VideoFetcher {
  /** The number of videos that one call fetches at a time. */
  readonly concurrencyPerCall: number;
  private readonly flights = new SingleFlight<{ outcome: CachedOutcome; fromCache: boolean }>();

  constructor(
    private readonly platform: VideoPlatform,
    private readonly cache: TranscriptCache,
    environment: Environment,
  ) {
    this.concurrencyPerCall = Math.ceil(VIDEOS_PER_REQUEST * environment.UPSTREAM_CONCURRENCY);
  }

  /** @throws the reason of `context.signal` when that is aborted first */
  fetch(
    { videoId, publishedAt }: Pick<Upload, 'videoId' | 'publishedAt'>,
    languages: readonly string[],
    context: ReadingContext,
  ): Promise<Fetched> {
    return inSpan('transcripts.fetch', { 'transcripts.video_id': videoId }, async (span) => {
      const { value, owner } = await this.flights.join(
        this.cache.key(videoId, languages),
        context,
        (shared) => this.load(videoId, publishedAt, languages, shared),
        ({ outcome, fromCache }) =>
          fromCache ? Promise.resolve() : this.cache.store(videoId, languages, outcome, publishedAt),
      );
      const { outcome, fromCache } = value;
      const own = owner && !fromCache;
      span.setAttributes({ 'transcripts.outcome': outcome.ok ? 'ok' : outcome.failure.code, 'transcripts.own': own });
      return { outcome, own };
    });
  }

  /** The text of a transcript that was fetched; undefined when it was evicted since. */
  async text(
    videoId: string,
    languages: readonly string[],
    transcript: TranscriptText,
    form: TextForm,
  ): Promise<SentText | undefined> {
    const [text] = await this.cache.texts([{ videoId, transcript }], languages, form);
    return text;
  }

  private async load(
    videoId: string,
    publishedAt: string | null,
    languages: readonly string[],
    context: ReadingContext,
  ) {
    // Another call may have fetched the video since this call was planned; its result is free.
    const known = await this.cache.get(videoId, languages);
    if (known) return { outcome: known, fromCache: true };
    const outcome = await this.platform.readVideo(videoId, languages, context, publishedAt);
    return { outcome: asCachedOutcome(outcome), fromCache: false };
  }
}

const logger = new Logger('Fetching');

/** Ends the fetching of a call whose response buffer is full; what has not arrived is not charged. */
class BufferFull extends Error {}

/** An entry that waits for its reader. A `compressed` text is inflated before it is sent. */
export interface WaitingEntry {
  readonly entry: Entry;
  readonly compressed: boolean;
}

/** The position of an entry that is being fetched. */
export class Slot {
  readonly entry: Promise<WaitingEntry>;
  resolve: (entry: WaitingEntry) => void;
  reject: (reason: unknown) => void;

  constructor(readonly upload: Upload) {
    this.entry = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // A bug is thrown to the reader when it reaches this entry; until then the rejection may have no handler.
    this.entry.catch(() => undefined);
  }

  fail(failure: VideoFailure, details: VideoDetails = NO_DETAILS): void {
    this.resolve({ entry: failedEntry(this.upload, details, failure), compressed: false });
  }
}

/**
 * Fetches the videos of one call concurrently and buffers the texts until the reader reaches them. It never waits for the
 * reader: beyond the first megabytes waiting texts are compressed, and when the buffer is full the fetching ends. A
 * fetched text is charged and buffered to the end, so that no charged transcript is missing in the response.
 */
export class Fetching implements ReadingContext {
  readonly signal: AbortSignal;
  readonly deadlineAtMs: number;
  readonly fairnessKey: object;
  readonly background: boolean;
  /** Videos that failed within the service: not requested before the deadline, text evicted, or response buffer full. */
  readonly givenUp = new Set<string>();
  /** The slot that the reader waits for: its text is passed on without being compressed. */
  awaited: Slot | 'any' | undefined;
  private readonly controller = new AbortController();
  private readonly languages: readonly string[];

  constructor(
    { call, languages }: Pick<CallPlan, 'call' | 'languages'>,
    private readonly form: TextForm,
    private readonly buffered: BufferedTexts,
    private readonly fetcher: Pick<VideoFetcher, 'concurrencyPerCall' | 'fetch' | 'text'>,
  ) {
    this.languages = languages;
    this.signal = this.controller.signal;
    this.deadlineAtMs = call.deadlineAtMs;
    this.fairnessKey = call.fairnessKey;
    this.background = call.background;
    setMaxListeners(0, this.signal);
    const end = (): void => this.controller.abort(call.signal.reason);
    if (call.signal.aborted) end();
    else call.signal.addEventListener('abort', end, { once: true });
  }

  /** Fills the slots. Resolves when all are filled, with the number of transcripts that the call pays for. */
  async fill(slots: readonly Slot[]): Promise<number> {
    let charged = 0;
    const next = slots.values();
    const worker = async (): Promise<void> => {
      for (const slot of next) {
        this.stopWhenFull();
        if (await this.fillSlot(slot)) charged++;
      }
    };
    await Promise.all(Array.from({ length: Math.min(this.fetcher.concurrencyPerCall, slots.length) }, worker));
    return charged;
  }

  /** Returns a waiting entry as it is sent. */
  async open({ entry, compressed }: WaitingEntry): Promise<Entry> {
    if (!compressed || !entry.ok) return entry;
    const { transcript } = entry;
    const bytes = await inflate(transcript.bytes, transcript.jsonBytes);
    this.buffered.add(bytes, 'passing');
    this.buffered.release(transcript.bytes);
    return { ...entry, transcript: { ...transcript, bytes } };
  }

  /**
   * The entry of a video that the response already contains. Its text is read from the cache again, so that texts are not
   * retained until their last occurrence.
   */
  async repeat(entry: Entry): Promise<Entry> {
    if (!entry.ok) return entry;
    const { videoId, metadata, transcript } = entry;
    const failed = (failure: VideoFailure): Entry => ({ videoId, ok: false, metadata, error: entryError(failure) });
    const { jsonBytes, crc32 } = transcript;
    if (!this.buffered.mayRead(jsonBytes)) return failed(BUFFER_FULL);
    const text = await this.fetcher.text(videoId, this.languages, { jsonBytes, crc32 }, this.form);
    if (!text) return failed(TEXT_EVICTED);
    this.buffered.add(text.bytes, 'passing');
    return { ...entry, transcript: text, cached: true };
  }

  /** Fails a slot for a cause within the service. */
  giveUp(slot: Slot, failure: VideoFailure, details?: VideoDetails): void {
    this.givenUp.add(slot.upload.videoId);
    slot.fail(failure, details);
  }

  /**
   * @returns whether the call pays for the transcript. Never rejects: a bug rejects the entry of the slot. A job tries the
   * video again instead, because one bug must not hold up its other videos.
   */
  private async fillSlot(slot: Slot): Promise<boolean> {
    const { upload } = slot;
    const { signal, deadlineAtMs, fairnessKey, background } = this;
    let requested = false;
    const onRequest = (): void => {
      requested = true;
    };
    try {
      const context = { signal, deadlineAtMs, fairnessKey, background, onRequest };
      const { outcome, own } = await this.fetcher.fetch(upload, this.languages, context);
      const { details } = outcome;
      if (!outcome.ok) {
        slot.fail(outcome.failure, details);
        return false;
      }
      const text = await this.fetcher.text(upload.videoId, this.languages, outcome.transcript, this.form);
      if (!text) {
        this.giveUp(slot, TEXT_EVICTED, details);
        return false;
      }
      const awaited = this.awaited === 'any' || this.awaited === slot;
      const compressed = this.form === 'json' && !awaited && !this.buffered.mayStayUncompressed(text.bytes);
      const bytes = compressed ? await deflate(text.bytes) : text.bytes;
      this.buffered.add(bytes, awaited ? 'passing' : 'waiting');
      this.stopWhenFull();
      slot.resolve({ entry: succeededEntry(upload, details, { ...text, bytes }, !own), compressed });
      return own;
    } catch (error) {
      const late = error instanceof CallEnded;
      if (late && requested) slot.fail({ code: 'upstream_timeout' });
      else if (late) this.giveUp(slot, { code: 'upstream_timeout' });
      else if (error instanceof BufferFull) this.giveUp(slot, BUFFER_FULL);
      else if (background) {
        logger.error(jobVideoFailedLine(upload.videoId, error));
        slot.fail(READING_FAILED);
      } else slot.reject(error);
      return false;
    }
  }

  private stopWhenFull(): void {
    if (!this.signal.aborted && !this.buffered.mayFetch) this.controller.abort(new BufferFull());
  }
}

/** The log line of a fault in the service that concerns one video of a job. */
export function jobVideoFailedLine(videoId: string, error: unknown): Readonly<Record<string, unknown>> {
  const stack = error instanceof Error ? error.stack : undefined;
  return { event: 'job_video_failed', videoId, cause: String(error), stack };
}
