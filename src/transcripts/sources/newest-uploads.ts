import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { UpstreamError } from '../../domain/errors.js';
import { Upload } from '../../domain/transcript.js';
import { type ReadingContext, type UploadsListPage, VideoPlatform } from '../../platform/video-platform.js';
import { CACHE_FORMAT } from '../cache/keyed-codec.js';
import { ReadThroughCache } from '../cache/read-through-cache.js';
import { TranscriptMetrics } from '../transcript-metrics.js';

/** Longer than checks that are due together wait for their turns; pages of many channels would push transcripts out of the cache. */
const TTL_SECONDS = 120;

/** A page with the time when its reading began, in milliseconds. */
export interface DatedPage extends UploadsListPage {
  readAtMs: number;
}
const datedPageSchema: z.ZodType<DatedPage> = z.object({
  uploads: z.array(Upload),
  next: z.string().nullable(),
  ...{ incomplete: z.boolean(), hidden: z.number().nullable(), pages: z.number(), readAtMs: z.number() },
});

/**
 * The newest page of a channel's uploads for checks: a page serves every check that was due when its reading began, and never
 * one that became due later. `dueAtMs` is when the check became due, by the clock of the process.
 */
@Injectable()
export class NewestUploads {
  private readonly pages: ReadThroughCache<DatedPage>;
  /** By channel, when the latest reading that is in progress began. */
  private readonly reading = new Map<string, number>();

  constructor(
    @Inject(CACHE_MANAGER) cache: Cache,
    private readonly platform: VideoPlatform,
    metrics: TranscriptMetrics,
  ) {
    this.pages = new ReadThroughCache('newest_uploads', TTL_SECONDS, datedPageSchema, cache, metrics);
  }

  /** The page of `page` with the dates and kinds that the list does not state; throws as `page` does. */
  async described(channelId: string, dueAtMs: number, context: ReadingContext): Promise<UploadsListPage> {
    const page = await this.page(channelId, dueAtMs, context);
    const { readAtMs } = page;
    return this.pages.get(
      `${CACHE_FORMAT}:described:${channelId}`,
      context,
      async (shared) => ({ ...(await this.platform.describe(channelId, page, shared)), readAtMs }),
      { serves: (known) => known.readAtMs === readAtMs, purpose: String(readAtMs) },
    );
  }

  /**
   * The page as the list alone states it, by at most one request.
   *
   * @throws ChannelNotFoundError | UpstreamError, and the reason of `context.signal` when that is aborted first
   */
  async page(channelId: string, dueAtMs: number, context: ReadingContext): Promise<DatedPage> {
    const beganAtMs = this.reading.get(channelId) ?? -Infinity;
    const joinedAtMs = beganAtMs >= dueAtMs ? beganAtMs : Date.now();
    this.reading.set(channelId, joinedAtMs);
    try {
      return await this.pages.get(
        `${CACHE_FORMAT}:newest:${channelId}`,
        context,
        async (shared) => {
          const readAtMs = Date.now();
          const page = await this.platform.uploads(channelId, undefined, shared);
          if (page.uploads.length > 0 || !page.incomplete) return { ...page, readAtMs };
          throw new UpstreamError('upstream_failure', new Error('The first page of the list cannot be read'));
        },
        {
          // The clock of another process can be ahead.
          serves: ({ readAtMs }) => readAtMs >= dueAtMs && readAtMs <= Date.now(),
          purpose: String(joinedAtMs),
        },
      );
    } finally {
      if (this.reading.get(channelId) === joinedAtMs) this.reading.delete(channelId);
    }
  }
}
