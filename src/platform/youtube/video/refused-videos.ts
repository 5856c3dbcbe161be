import { LRUCache } from 'lru-cache';
import type { VideoOutcome } from '../../../domain/transcript.js';

const REMEMBERED_MS = 600_000;
const VIDEOS_MAX = 10_000;

type Failed = Extract<VideoOutcome, { ok: false }>;

/** The videos that the platform refuses while it serves others, for ten minutes: to ask again would cost everybody requests. */
export class RefusedVideos {
  private readonly videos = new LRUCache<string, Failed>({
    max: VIDEOS_MAX,
    ttl: REMEMBERED_MS,
    ttlResolution: 0,
    perf: { now: () => performance.now() },
  });

  get(videoId: string, languages: readonly string[]): Failed | undefined {
    return this.videos.get(keyOf(videoId, languages));
  }

  add(videoId: string, languages: readonly string[], outcome: Failed): void {
    this.videos.set(keyOf(videoId, languages), outcome);
  }
}

function keyOf(videoId: string, languages: readonly string[]): string {
  return [videoId, ...languages].join(' ');
}
