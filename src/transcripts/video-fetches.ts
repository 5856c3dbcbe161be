import { Injectable } from '@nestjs/common';
import { VideoPlatform, type ReadingContext } from '../platform/video-platform.js';
import { SharedWork } from './single-flight.js';
import { asAnswer, TranscriptCache, type Answer } from './cache/transcript-cache.js';

export interface Fetched {
  answer: Answer;
  /** True when this call made the fetch, and so pays for it if it succeeded. */
  own: boolean;
}

interface Loaded {
  answer: Answer;
  fromCache: boolean;
}

/** Fetches transcripts, one fetch for all calls that need the same video in the same languages at the same time. */
@Injectable()
export class VideoFetches {
  private readonly work = new SharedWork<Loaded>();

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
      ({ answer, fromCache }) => (fromCache ? Promise.resolve() : this.cache.keep(videoId, languages, answer)),
    );
    return { answer: value.answer, own: owner && !value.fromCache };
  }

  private async load(videoId: string, languages: readonly string[], context: ReadingContext): Promise<Loaded> {
    // Another call may have fetched it since this one looked: what is there now is free.
    const known = await this.cache.get(videoId, languages);
    if (known) return { answer: known, fromCache: true };
    return { answer: asAnswer(await this.platform.readVideo(videoId, languages, context)), fromCache: false };
  }
}
