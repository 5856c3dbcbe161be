import { Injectable } from '@nestjs/common';
import { VideoPlatform, type ReadingContext } from '../platform/video-platform.js';
import { SingleFlight } from './single-flight.js';
import { asCachedOutcome, TranscriptCache, type CachedOutcome } from './cache/transcript-cache.js';

export interface Fetched {
  outcome: CachedOutcome;
  /** True when this call made the fetch, and so pays for it if it succeeded. */
  own: boolean;
}

interface Loaded {
  outcome: CachedOutcome;
  fromCache: boolean;
}

/** Fetches transcripts, one fetch for all calls that need the same video in the same languages at the same time. */
@Injectable()
export class VideoFetches {
  private readonly work = new SingleFlight<Loaded>();

  constructor(
    private readonly platform: VideoPlatform,
    private readonly cache: TranscriptCache,
  ) {}

  /** @throws the reason of `context.signal` when the call ends first */
  async fetch(videoId: string, languages: readonly string[], context: ReadingContext): Promise<Fetched> {
    const { value, owner } = await this.work.join(
      this.cache.key(videoId, languages),
      context,
      (shared) => this.load(videoId, languages, shared),
      ({ outcome, fromCache }) => (fromCache ? Promise.resolve() : this.cache.store(videoId, languages, outcome)),
    );
    return { outcome: value.outcome, own: owner && !value.fromCache };
  }

  private async load(videoId: string, languages: readonly string[], context: ReadingContext): Promise<Loaded> {
    // Another call may have fetched it since this one looked: what is there now is free.
    const known = await this.cache.get(videoId, languages);
    if (known) return { outcome: known, fromCache: true };
    return { outcome: asCachedOutcome(await this.platform.readVideo(videoId, languages, context)), fromCache: false };
  }
}
