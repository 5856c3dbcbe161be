import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { Environment } from '../../config/environment.js';
import {
  mayGetCaptions,
  VIDEO_FAILURE_CODES,
  VIDEO_FAILURES,
  VIDEO_KINDS,
  type VideoDetails,
  type VideoOutcome,
} from '../../domain/transcript.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { CACHE_FORMAT, KeyedCodec, type CacheEntry } from './keyed-codec.js';
import { deflate, jsonOf, type TranscriptText } from './transcript-text.js';

/** The outcome of a video, with its transcript as it is sent. */
export type CachedOutcome = VideoOutcome<TranscriptText>;

/**
 * A failure is cached for no longer when the platform may report otherwise soon: it is unconfirmed, or the video is new and
 * may get captions. A job tries such a video again after ten minutes and must then not find this failure.
 */
const UNCERTAIN_TTL_SECONDS_MAX = 300;

/** The metadata that a list and the video itself can state. */
export const METADATA_FIELDS = {
  title: z.string().nullable(),
  thumbnailUrl: z.string().nullable(),
  publishedAt: z.string().nullable(),
  durationSeconds: z.number().nullable(),
  viewCount: z.number().nullable(),
  kind: z.enum(VIDEO_KINDS).nullable(),
};

const detailsSchema: z.ZodType<VideoDetails> = z.object({
  ...METADATA_FIELDS,
  captionTracks: z.array(z.object({ languageCode: z.string(), name: z.string(), generated: z.boolean() })).nullable(),
});

/** What is stored with the deflated text of a transcript, or alone for a video that has none. */
const storedSchema = z.union([
  z.object({ details: detailsSchema, jsonBytes: z.int().nonnegative(), crc32: z.int() }),
  z.object({ details: detailsSchema, code: z.enum(VIDEO_FAILURE_CODES), message: z.string().nullable() }),
]);
type Stored = z.infer<typeof storedSchema>;

/** Caches transcripts, and the reasons of videos that have none: one entry for a video and a list of languages. */
@Injectable()
export class TranscriptCache {
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

  /** Looks up the outcome of each video, in one round trip; undefined for a miss. */
  async getMany(
    videoIds: readonly string[],
    languages: readonly string[],
  ): Promise<readonly (CachedOutcome | undefined)[]> {
    if (videoIds.length === 0) return [];
    const keys = videoIds.map((videoId) => this.key(videoId, languages));
    const values = await this.cache.mget<unknown>(keys);
    return keys.map((key, index) => {
      const entry = this.codec.read(key, values[index]);
      return entry && outcomeOf(entry);
    });
  }

  /**
   * Stores a transcript or a failure that is not retryable. Never rejects: the cache counts and logs its own failures.
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
    if (outcome.ok) {
      const { details, transcript } = outcome;
      const { deflated, jsonBytes, crc32 } = transcript;
      const entry = this.codec.write(key, { details, jsonBytes, crc32 }, deflated);
      await this.cache.set(key, entry, this.environment.TRANSCRIPT_TTL_SECONDS * 1000);
      return;
    }
    const { details, failure, confirmed } = outcome;
    const { code, message = null } = failure;
    if (VIDEO_FAILURES[code].retryable) return;
    const { UNAVAILABLE_TTL_SECONDS: ttlSeconds } = this.environment;
    const awaitsCaptions =
      code === 'transcript_unavailable' && mayGetCaptions(details.publishedAt ?? listedAt, Date.now());
    const isUncertain = confirmed === false || awaitsCaptions;
    const secondsMax = isUncertain ? Math.min(UNCERTAIN_TTL_SECONDS_MAX, ttlSeconds) : ttlSeconds;
    await this.cache.set(key, this.codec.write(key, { details, code, message }), secondsMax * 1000);
  }
}

function outcomeOf({ value, bytes }: CacheEntry<Stored>): CachedOutcome {
  const { details } = value;
  if ('code' in value) {
    const { code, message } = value;
    return { ok: false, details, failure: message === null ? { code } : { code, message } };
  }
  const { jsonBytes, crc32 } = value;
  return { ok: true, details, transcript: { deflated: bytes, jsonBytes, crc32 } };
}

/** Converts an outcome of the platform to the form in which it is cached and sent. */
export async function asCachedOutcome(outcome: VideoOutcome): Promise<CachedOutcome> {
  return outcome.ok ? { ...outcome, transcript: await deflate(await jsonOf(outcome.transcript)) } : outcome;
}
