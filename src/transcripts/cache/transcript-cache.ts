import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { LOCAL_ENTRIES_SHARE } from '../../cache/cache.module.js';
import { SharedCache } from '../../cache/shared-cache.js';
import { Environment } from '../../config/environment.js';
import {
  VIDEO_FAILURE_CODES,
  VIDEO_FAILURES,
  VIDEO_KINDS,
  type VideoDetails,
  type VideoFailure,
  type VideoOutcome,
} from '../../domain/transcript.js';
import { TranscriptTextStore } from './transcript-text-store.js';
import { KeyedCodec, finite, flag, listOf, nullable, oneOf, record, text, type Reader } from './keyed-codec.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { textOf, type SentText, type TextForm, type TranscriptText } from './transcript-text.js';

/** What is known of a video: its transcript as it is sent, or why it has none. */
export type CachedOutcome =
  | { ok: true; details: VideoDetails; transcript: TranscriptText }
  | { ok: false; details: VideoDetails; failure: VideoFailure };

/** Raised when the stored form changes, so that another version's entries are simply not found. */
const FORMAT = 'ct4';
/** How much longer than what tells of them texts are kept: what a call found at its beginning is there at its end. */
const TEXT_HOLD_SECONDS = 600;
const UNREADABLE_LOG_INTERVAL_MS = 60_000;

/** Twice a caption body: only text that is nearly all escapes is longer as JSON. Real transcripts have 2 MB at most. */
const JSON_BYTES_MAX = 8 * 1024 * 1024;
const TOO_LONG = 'The captions of this video are larger than this service accepts.';

const detailsReader: Reader<VideoDetails> = record<VideoDetails>({
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
 * Transcripts, and the videos known to have none, by video and languages. What is known of a video is one entry and the
 * text of its transcript another, so that text is copied to the answer as it is. In this process's memory the texts are
 * held from the look-up on; from another process they are read when their turn comes, so that a slow reader does not
 * pin them all, and copies of what was read last are used again while they are still the text.
 */
@Injectable()
export class TranscriptCache {
  private readonly logger = new Logger(TranscriptCache.name);
  private readonly outcomes = new KeyedCodec(outcomeReader);
  private readonly stored: TranscriptTextStore;
  private readonly textsAreHere: boolean;
  private unreadableLoggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    @Inject(CACHE_MANAGER) private readonly cache: Cache,
    private readonly environment: Environment,
    private readonly metrics: TranscriptMetrics,
    private readonly shared: SharedCache,
  ) {
    this.textsAreHere = !shared.configured;
    const textTtlSeconds = environment.TRANSCRIPT_TTL_SECONDS + TEXT_HOLD_SECONDS;
    const copiesBytesMax = environment.CACHE_MAX_MEGABYTES * 1024 * 1024 * (1 - LOCAL_ENTRIES_SHARE);
    const unreadable = (): void => this.reportUnreadable();
    this.stored = this.textsAreHere
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
    return `${FORMAT}:transcript:${videoId}:${languages.join(',')}`;
  }

  /** What is known of each video, in one round trip (two in another process); undefined where nothing is. */
  async getMany(videoIds: readonly string[], languages: readonly string[]): Promise<(CachedOutcome | undefined)[]> {
    if (videoIds.length === 0) return [];
    const keys = videoIds.map((videoId) => this.key(videoId, languages));
    if (!this.textsAreHere) return this.withTexts(keys, await this.cache.mget<unknown>(keys));
    const textKeys = keys.map((key) => this.stored.keys(key));
    const values = await this.cache.mget<unknown>([
      ...keys,
      ...textKeys.map(({ json }) => json),
      ...textKeys.map(({ deflated }) => deflated),
    ]);
    return keys.map((key, index) => {
      const outcome = this.outcome(key, values[index]);
      if (!outcome?.ok) return outcome;
      const texts = [values[keys.length + index], values[2 * keys.length + index]] as const;
      const transcript = this.stored.found(outcome.transcript, ...texts);
      return transcript.json && { ...outcome, transcript };
    });
  }

  /** What is known of one video, its text with it. */
  async get(videoId: string, languages: readonly string[]): Promise<CachedOutcome | undefined> {
    const [outcome] = await this.getMany([videoId], languages);
    if (!outcome?.ok || outcome.transcript.json) return outcome;
    const [sent] = await this.texts([{ videoId, transcript: outcome.transcript }], languages, 'json');
    return sent && { ...outcome, transcript: { ...outcome.transcript, json: sent.bytes } };
  }

  /** The texts of transcripts that were found before, in one round trip; undefined where a text was lost since. */
  texts(
    wanted: readonly { videoId: string; transcript: TranscriptText }[],
    languages: readonly string[],
    form: TextForm,
  ): Promise<(SentText | undefined)[]> {
    return this.stored.read(
      wanted.map(({ videoId, transcript }) => ({ key: this.key(videoId, languages), transcript })),
      form,
    );
  }

  /** Remembers a transcript, or a failure that asking again would not change; anything else is not stored. */
  async store(videoId: string, languages: readonly string[], outcome: CachedOutcome): Promise<void> {
    const key = this.key(videoId, languages);
    if (!outcome.ok) {
      if (VIDEO_FAILURES[outcome.failure.code].retryable) return;
      const { code, message = null } = outcome.failure;
      const failure = this.outcomes.write(key, { details: outcome.details, code, message });
      await this.write(key, failure, this.environment.UNAVAILABLE_TTL_SECONDS);
      return;
    }
    const { json, jsonBytes, crc32 } = outcome.transcript;
    if (!json) return;
    const known = this.outcomes.write(key, { details: outcome.details, jsonBytes, crc32 });
    const { TRANSCRIPT_TTL_SECONDS: ttlSeconds } = this.environment;
    // The text first: with an entry whose text was refused, other processes would count on a transcript that they lack.
    if (await this.stored.store(key, json, crc32)) await this.write(key, known, ttlSeconds);
    else this.shared.setLocally(key, known, ttlSeconds);
  }

  /** Lets go of an answer whose text was lost, so that the next call fetches it. */
  async evict(videoId: string, languages: readonly string[]): Promise<void> {
    await this.cache.del(this.key(videoId, languages));
  }

  /**
   * What is known of each video whose text is there too. One whose text was evicted counts as unknown, so that it is
   * reserved for and fetched like any other.
   */
  private async withTexts(keys: readonly string[], values: readonly unknown[]): Promise<(CachedOutcome | undefined)[]> {
    const outcomes = keys.map((key, index) => this.outcome(key, values[index]));
    const wanted = keys.flatMap((key, index) => {
      const outcome = outcomes[index];
      return outcome?.ok ? [{ key, transcript: outcome.transcript, index }] : [];
    });
    const present = await this.stored.present(wanted);
    for (const [position, { index }] of wanted.entries()) if (!present[position]) outcomes[index] = undefined;
    return outcomes;
  }

  private outcome(key: string | undefined, value: unknown): CachedOutcome | undefined {
    if (value === undefined || value === null) return undefined;
    const answer = Buffer.isBuffer(value) ? this.outcomes.read(key, value) : undefined;
    if (!answer) this.reportUnreadable();
    return answer;
  }

  /** A cache that does not take it is no reason to fail; the store counts and logs that. */
  private async write(key: string, value: Buffer, ttlSeconds: number): Promise<boolean> {
    await this.cache.set(key, value, ttlSeconds * 1000);
    return true;
  }

  /** After a change of the secret every entry is unreadable: logged now and then, counted each time. */
  private reportUnreadable(): void {
    this.metrics.cache.transcript.unreadable();
    const nowMs = performance.now();
    if (nowMs - this.unreadableLoggedAtMs < UNREADABLE_LOG_INTERVAL_MS) return;
    this.unreadableLoggedAtMs = nowMs;
    this.logger.warn({
      event: 'cache_entry_unreadable',
      message:
        'A stored entry is damaged or not signed with the secret of this process, and counts as missing. Logged once a minute.',
    });
  }
}

/** The form in which an outcome of the platform is kept and sent. */
export function asCachedOutcome(outcome: VideoOutcome): CachedOutcome {
  if (!outcome.ok) return outcome;
  const { details } = outcome;
  const transcript = textOf(outcome.transcript);
  if (transcript.jsonBytes > JSON_BYTES_MAX)
    return { ok: false, details, failure: { code: 'upstream_failure', message: TOO_LONG } };
  return { ok: true, details, transcript };
}
