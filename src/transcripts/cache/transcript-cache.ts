import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { Environment } from '../../config/environment.js';
import {
  NO_DETAILS,
  VIDEO_FAILURE_CODES,
  TextTracks,
  type Upload,
  VideoDetails,
  type VideoOutcome,
} from '../../domain/transcript.js';
import { failureLifetimeSeconds, uploadAgeSeconds } from '../finality.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { CACHE_FORMAT, KeyedCodec, type CacheEntry } from './keyed-codec.js';
import { textLifetimeSeconds, type PublishDates } from './lifetimes.js';
import { deflate, jsonOf, type TranscriptText } from './transcript-text.js';

/** The outcome of a video, with its transcript as it is sent. */
export type CachedOutcome = VideoOutcome<TranscriptText>;

/** A video as a list states it; its age decides how long its outcome is cached. */
export type ListedVideo = Pick<Upload, 'videoId' | 'kind'> & PublishDates;

/** Of a failure that only one source reports: the platform may soon report otherwise. */
const UNCONFIRMED_TTL_SECONDS_MAX = 300;

/** A video that is tried again shares what another call has found just before. */
const SHARED_WITH_RETRIES_MS = 10_000;

/** What is stored with the deflated text of a transcript, or alone for a video that has none. */
const storedSchema = z.union([
  z.object({ details: VideoDetails, tracks: TextTracks, jsonBytes: z.int().nonnegative(), crc32: z.int() }),
  z.object({
    details: VideoDetails,
    code: z.enum(VIDEO_FAILURE_CODES),
    message: z.string().nullable(),
    foundAtMs: z.number().default(0),
  }),
]);
type Stored = z.infer<typeof storedSchema>;

const EMPTY = deflate(Buffer.from('{}')).then((transcript): CachedOutcome => ({
  ok: true,
  details: NO_DETAILS,
  tracks: {},
  transcript,
}));

/** Caches transcripts, and the reasons of videos that have none: one entry for a video and a list of languages. */
@Injectable()
export class TranscriptCache {
  /**
   * Whether the only caller of this process, a command, needs no text of a video, whose file it has. Such a video counts as cached, and
   * its transcript is empty.
   */
  isElsewhere: (videoId: string) => boolean = () => false;
  private readonly codec: KeyedCodec<Stored>;

  constructor(
    @Inject(CACHE_MANAGER) private readonly cache: Cache,
    private readonly environment: Environment,
    metrics: TranscriptMetrics,
  ) {
    this.codec = new KeyedCodec(storedSchema, () => metrics.countUnreadable('transcript'));
  }

  key(videoId: string, languages: readonly string[]): string {
    return `${CACHE_FORMAT}:transcript:${videoId}:${languages.join(',')}`;
  }

  /**
   * Looks up the outcome of each video, in one round trip; undefined for a miss.
   *
   * @param again videos that are tried again: that they have no text counts only when it was found in the last seconds
   */
  async getMany(
    videoIds: readonly string[],
    languages: readonly string[],
    again: ReadonlySet<string> = new Set(),
  ): Promise<readonly (CachedOutcome | undefined)[]> {
    if (videoIds.length === 0) return [];
    const keys = videoIds.map((videoId) => this.key(videoId, languages));
    const values = await this.cache.mget<unknown>(keys);
    const empty = await EMPTY;
    return keys.map((key, index) => {
      if (this.isElsewhere(videoIds[index] ?? '')) return empty;
      const entry = this.codec.read(key, values[index]);
      if (!entry || (again.has(videoIds[index] ?? '') && isPastFailure(entry.value))) return undefined;
      return outcomeOf(entry);
    });
  }

  /** Stores a transcript or a failure that is not retryable. Never rejects: the cache counts and logs its own failures. */
  async store(video: ListedVideo, languages: readonly string[], outcome: CachedOutcome): Promise<void> {
    const { TRANSCRIPT_TTL_SECONDS, UNAVAILABLE_TTL_SECONDS } = this.environment;
    const key = this.key(video.videoId, languages);
    const { details } = outcome;
    const publishedAt = details.publishedAt ?? video.publishedAt;
    const ageSeconds = uploadAgeSeconds({ ...video, publishedAt }, Date.now()) ?? 0;
    if (outcome.ok) {
      const { deflated, jsonBytes, crc32 } = outcome.transcript;
      const entry = this.codec.write(key, { details, tracks: outcome.tracks, jsonBytes, crc32 }, deflated);
      await this.cache.set(key, entry, textLifetimeSeconds(TRANSCRIPT_TTL_SECONDS, ageSeconds) * 1000);
      return;
    }
    const { code, message = null } = outcome.failure;
    const byAge = failureLifetimeSeconds(code, UNAVAILABLE_TTL_SECONDS, ageSeconds);
    if (byAge === 0) return;
    const ttlSeconds = outcome.confirmed === false ? Math.min(UNCONFIRMED_TTL_SECONDS_MAX, byAge) : byAge;
    await this.cache.set(
      key,
      this.codec.write(key, { details, code, message, foundAtMs: Date.now() }),
      ttlSeconds * 1000,
    );
  }
}

function isPastFailure(value: Stored): boolean {
  return 'code' in value && Date.now() - value.foundAtMs > SHARED_WITH_RETRIES_MS;
}

function outcomeOf({ value, bytes }: CacheEntry<Stored>): CachedOutcome {
  const { details } = value;
  if ('code' in value) {
    const { code, message } = value;
    return { ok: false, details, failure: message === null ? { code } : { code, message } };
  }
  const { tracks, jsonBytes, crc32 } = value;
  return { ok: true, details, tracks, transcript: { deflated: bytes, jsonBytes, crc32 } };
}

/** Converts an outcome of the platform to the form in which it is cached and sent. */
export async function asCachedOutcome(outcome: VideoOutcome): Promise<CachedOutcome> {
  return outcome.ok ? { ...outcome, transcript: await deflate(await jsonOf(outcome.transcript)) } : outcome;
}
