import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { LOCAL_ENTRIES_SHARE } from '../../cache/cache.module.js';
import { MemoryStore } from '../../cache/memory-store.js';
import { SharedCache } from '../../cache/shared-cache.js';
import { Environment } from '../../config/environment.js';
import {
  mayGetCaptions,
  VIDEO_FAILURE_CODES,
  VIDEO_FAILURES,
  VIDEO_KINDS,
  type VideoDetails,
  type VideoFailure,
  type VideoOutcome,
} from '../../domain/transcript.js';
import { CompleteLookups } from './complete-lookups.js';
import { TranscriptTextStore } from './transcript-text-store.js';
import {
  CACHE_FORMAT,
  KeyedCodec,
  finite,
  flag,
  listOf,
  nullable,
  oneOf,
  record,
  text,
  type Reader,
} from './keyed-codec.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { textOf, type SentText, type TextForm, type TranscriptText } from './transcript-text.js';

/** The outcome of a video: its transcript as it is sent, or why it has none. */
export type CachedOutcome =
  | { ok: true; details: VideoDetails; transcript: TranscriptText }
  | { ok: false; details: VideoDetails; failure: VideoFailure; confirmed?: boolean };

/** Texts live longer than their outcomes, so that a text found when a call starts is available until its end. */
const TEXT_EXTRA_SECONDS = 600;
/**
 * A failure is cached for no longer when the platform may report otherwise soon: it is unconfirmed, or the video is new and
 * may get captions. A job tries such a video again after ten minutes and must then not find this failure.
 */
const UNCERTAIN_TTL_SECONDS_MAX = 300;
const UNREADABLE_LOG_INTERVAL_MS = 60_000;

/** Twice the limit of a caption body: only text of mostly escapes is longer. Real transcripts have at most 2 MB. */
const JSON_BYTES_MAX = 8 * 1024 * 1024;
const TOO_LONG = 'The captions of this video are larger than this service accepts.';

const detailsReader: Reader<VideoDetails> = record<VideoDetails>({
  title: nullable(text),
  thumbnailUrl: nullable(text),
  publishedAt: nullable(text),
  durationSeconds: nullable(finite),
  viewCount: nullable(finite),
  kind: nullable(oneOf(VIDEO_KINDS)),
  captionTracks: nullable(listOf(record({ languageCode: text, name: text, generated: flag }))),
});
const transcriptReader = record({ details: detailsReader, jsonBytes: finite, crc32: finite });
const failureReader = record({ details: detailsReader, code: oneOf(VIDEO_FAILURE_CODES), message: nullable(text) });

const outcomeReader: Reader<CachedOutcome> = (value) => {
  const found = transcriptReader(value);
  if (found) {
    const { details, jsonBytes, crc32 } = found;
    return { ok: true, details, transcript: { jsonBytes, crc32 } };
  }
  const failed = failureReader(value);
  if (!failed) return undefined;
  const { code, message, details } = failed;
  return { ok: false, details, failure: message === null ? { code } : { code, message } };
};

/**
 * Caches transcripts, and the reasons of videos that have none, by video and languages. The outcome of a video and the
 * text of its transcript are separate entries, so that a text is sent without being parsed. A lookup in the memory of
 * this process returns the texts; texts in a shared cache are read when they are sent, so that a slow reader does not
 * retain them all, and local copies of them are used while they are current.
 */
@Injectable()
export class TranscriptCache {
  private readonly logger = new Logger(TranscriptCache.name);
  private readonly outcomes = new KeyedCodec(outcomeReader);
  private readonly lookups = new CompleteLookups<CachedOutcome>();
  private readonly textStore: TranscriptTextStore;
  private unreadableLoggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    @Inject(CACHE_MANAGER) private readonly cache: Cache,
    private readonly environment: Environment,
    private readonly metrics: TranscriptMetrics,
    private readonly shared: SharedCache,
    @Inject(MemoryStore) private readonly memory: MemoryStore | null,
  ) {
    memory?.onChange(() => this.lookups.invalidate());
    const textTtlSeconds = environment.TRANSCRIPT_TTL_SECONDS + TEXT_EXTRA_SECONDS;
    const copiesBytesMax = environment.CACHE_MAX_MEGABYTES * 1024 * 1024 * (1 - LOCAL_ENTRIES_SHARE);
    const unreadable = (): void => this.reportUnreadable();
    this.textStore = memory
      ? new TranscriptTextStore(
          {
            read: (keys) => cache.mget<unknown>(keys),
            present: async (keys) => (await cache.mget<unknown>(keys)).map((value) => value !== undefined),
            write: (key, bytes) => this.write(key, bytes, textTtlSeconds),
            touch: () => undefined,
            unreadable,
          },
          0,
        )
      : new TranscriptTextStore(
          {
            read: (keys) => shared.read(keys),
            present: (keys) => shared.present(keys),
            write: (key, bytes) => shared.write(key, bytes, textTtlSeconds),
            touch: (key, restore) => shared.touch(key, restore),
            unreadable,
          },
          copiesBytesMax,
        );
  }

  key(videoId: string, languages: readonly string[]): string {
    return `${CACHE_FORMAT}:transcript:${videoId}:${languages.join(',')}`;
  }

  /** Looks up the outcome of each video, in one round trip (two for a shared cache); undefined for a miss. */
  async getMany(
    videoIds: readonly string[],
    languages: readonly string[],
  ): Promise<readonly (CachedOutcome | undefined)[]> {
    if (videoIds.length === 0) return [];
    if (this.memory)
      return this.lookups.find(`${languages.join(',')} ${videoIds.join(',')}`, () => this.lookUp(videoIds, languages));
    const keys = videoIds.map((videoId) => this.key(videoId, languages));
    return this.withTexts(keys, await this.cache.mget<unknown>(keys));
  }

  /** Looks up the outcomes in the memory of this process, with their texts. */
  private async lookUp(
    videoIds: readonly string[],
    languages: readonly string[],
  ): Promise<(CachedOutcome | undefined)[]> {
    const keys = videoIds.map((videoId) => this.key(videoId, languages));
    const textKeys = keys.map((key) => this.textStore.keys(key));
    const values = await this.cache.mget<unknown>([
      ...keys,
      ...textKeys.map(({ json }) => json),
      ...textKeys.map(({ deflated }) => deflated),
    ]);
    return keys.map((key, index) => {
      const outcome = this.outcome(key, values[index]);
      if (!outcome?.ok) return outcome;
      const texts = [values[keys.length + index], values[2 * keys.length + index]] as const;
      const transcript = this.textStore.found(outcome.transcript, ...texts);
      return transcript.json && { ...outcome, transcript };
    });
  }

  /** Looks up the outcome of one video, with its text. */
  async get(videoId: string, languages: readonly string[]): Promise<CachedOutcome | undefined> {
    const [outcome] = await this.getMany([videoId], languages);
    if (!outcome?.ok || outcome.transcript.json) return outcome;
    const [sent] = await this.texts([{ videoId, transcript: outcome.transcript }], languages, 'json');
    return sent && { ...outcome, transcript: { ...outcome.transcript, json: sent.bytes } };
  }

  /** Reads the texts of transcripts that a lookup found, in one round trip; undefined for one that was evicted since. */
  texts(
    wanted: readonly { videoId: string; transcript: TranscriptText }[],
    languages: readonly string[],
    form: TextForm,
  ): Promise<(SentText | undefined)[]> {
    return this.textStore.read(
      wanted.map(({ videoId, transcript }) => ({ key: this.key(videoId, languages), transcript })),
      form,
    );
  }

  /**
   * Stores a transcript or a failure that is not retryable.
   *
   * @param listedAt when the video was published, according to the list of uploads; null when that has no date
   */
  async store(
    videoId: string,
    languages: readonly string[],
    outcome: CachedOutcome,
    listedAt: string | null = null,
  ): Promise<void> {
    const key = this.key(videoId, languages);
    if (!outcome.ok) {
      if (VIDEO_FAILURES[outcome.failure.code].retryable) return;
      const { code, message = null } = outcome.failure;
      const failure = this.outcomes.write(key, { details: outcome.details, code, message });
      const { UNAVAILABLE_TTL_SECONDS: ttlSeconds } = this.environment;
      const publishedAt = outcome.details.publishedAt ?? listedAt;
      const awaitsCaptions = code === 'transcript_unavailable' && mayGetCaptions(publishedAt, Date.now());
      const uncertain = outcome.confirmed === false || awaitsCaptions;
      await this.write(key, failure, uncertain ? Math.min(UNCERTAIN_TTL_SECONDS_MAX, ttlSeconds) : ttlSeconds);
      return;
    }
    const { json, jsonBytes, crc32 } = outcome.transcript;
    if (!json) return;
    const known = this.outcomes.write(key, { details: outcome.details, jsonBytes, crc32 });
    const { TRANSCRIPT_TTL_SECONDS: ttlSeconds } = this.environment;
    // The text first: an outcome without its text would promise a transcript to other processes that they cannot read.
    if (await this.textStore.store(key, json, crc32)) await this.write(key, known, ttlSeconds);
    else this.shared.setLocally(key, known, ttlSeconds);
  }

  /** Deletes an outcome whose text was evicted, so that the transcript is fetched again. */
  async evict(videoId: string, languages: readonly string[]): Promise<void> {
    await this.cache.del(this.key(videoId, languages));
  }

  /**
   * The outcomes whose texts are available. One whose text was evicted is a miss, so that quota is reserved for it and it
   * is fetched like any other.
   */
  private async withTexts(keys: readonly string[], values: readonly unknown[]): Promise<(CachedOutcome | undefined)[]> {
    const outcomes = keys.map((key, index) => this.outcome(key, values[index]));
    const wanted = keys.flatMap((key, index) => {
      const outcome = outcomes[index];
      return outcome?.ok ? [{ key, transcript: outcome.transcript, index }] : [];
    });
    const present = await this.textStore.present(wanted);
    for (const [position, { index }] of wanted.entries()) if (!present[position]) outcomes[index] = undefined;
    return outcomes;
  }

  private outcome(key: string | undefined, value: unknown): CachedOutcome | undefined {
    if (value === undefined || value === null) return undefined;
    const outcome = Buffer.isBuffer(value) ? this.outcomes.read(key, value) : undefined;
    if (!outcome) this.reportUnreadable();
    return outcome;
  }

  /** Never rejects: the cache counts and logs its own failures. */
  private async write(key: string, value: Buffer, ttlSeconds: number): Promise<boolean> {
    await this.cache.set(key, value, ttlSeconds * 1000);
    return true;
  }

  /** Counts each entry and logs once per interval, because a change of the secret makes every entry unreadable. */
  private reportUnreadable(): void {
    this.metrics.cache.transcript.unreadable();
    const nowMs = performance.now();
    if (nowMs - this.unreadableLoggedAtMs < UNREADABLE_LOG_INTERVAL_MS) return;
    this.unreadableLoggedAtMs = nowMs;
    this.logger.warn({
      event: 'cache_entry_unreadable',
      message:
        'A cache entry is damaged or not signed with the secret of this process, and counts as missing. Logged at most once a minute.',
    });
  }
}

/** Converts an outcome of the platform to the form in which it is cached and sent. */
export function asCachedOutcome(outcome: VideoOutcome): CachedOutcome {
  if (!outcome.ok) return outcome;
  const { details } = outcome;
  const transcript = textOf(outcome.transcript);
  if (transcript.jsonBytes > JSON_BYTES_MAX)
    return { ok: false, details, failure: { code: 'upstream_failure', message: TOO_LONG } };
  return { ok: true, details, transcript };
}
