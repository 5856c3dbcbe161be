import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { inSpan } from '../../observability/tracing/tracer.js';
import { VideoPlatform, type ReadingContext } from '../../platform/video-platform.js';
import { asCachedOutcome, TranscriptCache, type CachedOutcome, type ListedVideo } from '../cache/transcript-cache.js';
import type { CallPlan } from '../call-plan.js';
import { SingleFlight } from './single-flight.js';

export interface Fetched {
  outcome: CachedOutcome;
  /** True when this call made the fetch, and so pays for it if it succeeded. */
  own: boolean;
}

/**
 * For how long the look-up of a plan is not repeated, unless this process has stored the video meanwhile. Later another
 * process may have stored it, and one more look-up is cheaper than two requests to the platform.
 */
const LOOKUP_VALID_MS = 5_000;

/** Fetches transcripts; calls that need the same video in the same languages at the same time share one fetch. */
@Injectable()
export class VideoFetcher {
  private readonly flights = new SingleFlight<{ outcome: CachedOutcome; fromCache: boolean }>();
  private readonly recentlyStored = new LRUCache<string, true>({ max: 10_000, ttl: LOOKUP_VALID_MS });

  constructor(
    private readonly platform: VideoPlatform,
    private readonly cache: TranscriptCache,
  ) {}

  /** Fetches a video that the plan lacks. @throws the reason of `context.signal` when that is aborted first */
  fetch(
    video: ListedVideo,
    { languages, lookedUpAtMs, again }: Pick<CallPlan, 'languages' | 'lookedUpAtMs' | 'again'>,
    context: ReadingContext,
  ): Promise<Fetched> {
    const { videoId, publishedAt } = video;
    return inSpan('transcripts.fetch', { 'transcripts.video_id': videoId }, async (span) => {
      const key = this.cache.key(videoId, languages);
      const { value, owner } = await this.flights.join(
        key,
        context,
        async (shared) => {
          // Another call may have fetched the video since this call was planned; its result is free.
          if (this.recentlyStored.has(key) || performance.now() - lookedUpAtMs > LOOKUP_VALID_MS) {
            const [known] = await this.cache.getMany([videoId], languages, again);
            if (known) return { outcome: known, fromCache: true };
          }
          const outcome = await this.platform.readVideo(videoId, languages, shared, publishedAt);
          return { outcome: await asCachedOutcome(outcome), fromCache: false };
        },
        async ({ outcome, fromCache }) => {
          if (fromCache) return;
          await this.cache.store(video, languages, outcome);
          this.recentlyStored.set(key, true);
        },
      );
      const { outcome, fromCache } = value;
      const own = owner && !fromCache;
      span.setAttributes({ 'transcripts.outcome': outcome.ok ? 'ok' : outcome.failure.code, 'transcripts.own': own });
      return { outcome, own };
    });
  }
}
