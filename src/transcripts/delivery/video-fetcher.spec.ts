import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { CacheModule } from '../../cache/cache.module.js';
import { Environment } from '../../config/environment.js';
import { NO_DETAILS, unlistedVideo, type VideoOutcome } from '../../domain/transcript.js';
import type { VideoPlatform } from '../../platform/video-platform.js';
import { asCachedOutcome, TranscriptCache } from '../cache/transcript-cache.js';
import { Call } from '../call.js';
import { VideoFetcher } from './video-fetcher.js';
import { TranscriptMetrics } from '../transcript-metrics.js';

const VIDEO = unlistedVideo('video');
const READ: VideoOutcome = {
  ok: true,
  tracks: {},
  details: NO_DETAILS,
  transcript: new Map([['en', [{ text: 'Hello harbour', start: 0, duration: 1 }]]]),
};
const UNREADABLE: VideoOutcome = { ok: false, details: NO_DETAILS, failure: { code: 'upstream_failure' } };

const environment = new Environment();
let module: TestingModule;
let cache: Cache;
let transcripts: TranscriptCache;
let fetcher: VideoFetcher;
let call: Call;
let reads: number;
let lookups: number;
let outcome: VideoOutcome;

const countLookup = (): void => void lookups++;

beforeAll(async () => {
  module = await Test.createTestingModule({ imports: [CacheModule.forRoot(environment)] }).compile();
  cache = module.get<Cache>(CACHE_MANAGER);
  transcripts = new TranscriptCache(cache, environment, new TranscriptMetrics(new Registry()));
  cache.on('get', countLookup);
  cache.on('mget', countLookup);
});
afterAll(() => module.close());
beforeEach(async () => {
  await cache.clear();
  fetcher = newFetcher();
  call = new Call(60);
  [reads, lookups, outcome] = [0, 0, READ];
});
afterEach(() => call.finish());

/** The fetcher of a process; all of them share the cache. */
function newFetcher(): VideoFetcher {
  const platform: Pick<VideoPlatform, 'readVideo'> = {
    readVideo: async () => {
      reads++;
      await Promise.resolve();
      return outcome;
    },
  };
  return new VideoFetcher(platform as VideoPlatform, transcripts);
}

const planned = (agoMs = 0) => ({ languages: ['en'], lookedUpAtMs: performance.now() - agoMs });

describe('a fetch', () => {
  it('repeats no look-up of its plan, also when an outcome is not stored', async () => {
    expect(await fetcher.fetch(VIDEO, planned(), call)).toMatchObject({ own: true });
    expect([reads, lookups]).toEqual([1, 0]);
    outcome = UNREADABLE;
    await fetcher.fetch(unlistedVideo('other'), planned(), call);
    expect([reads, lookups]).toEqual([2, 0]);
  });

  it('finds what another call of this process has stored since its plan, for free', async () => {
    const plan = planned();
    await fetcher.fetch(VIDEO, planned(), call);
    expect(await fetcher.fetch(VIDEO, plan, call)).toMatchObject({ own: false, outcome: { ok: true } });
    expect([reads, lookups]).toEqual([1, 1]);
  });

  it('finds what another process has stored, for free, when its plan is older than some seconds', async () => {
    await transcripts.store(VIDEO, ['en'], await asCachedOutcome(READ));
    expect(await fetcher.fetch(VIDEO, planned(5_100), call)).toMatchObject({ own: false, outcome: { ok: true } });
    expect([reads, lookups]).toEqual([0, 1]);
  });

  it('reads a video again when the cache has lost it', async () => {
    await fetcher.fetch(VIDEO, planned(), call);
    await cache.clear();
    expect(await fetcher.fetch(VIDEO, planned(), call)).toMatchObject({ own: true });
    expect(reads).toBe(2);
  });

  it('has one payer for each video, for any calls that were planned together and start at any time', async () => {
    const calls = fc.array(fc.record({ video: fc.nat(2), afterTurns: fc.nat(30) }), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(calls, async (starts) => {
        await cache.clear();
        fetcher = newFetcher();
        reads = 0;
        const plan = planned();
        const fetched = await Promise.all(
          starts.map(async ({ video, afterTurns }) => {
            for (let turn = 0; turn < afterTurns; turn++) await new Promise((resolve) => setImmediate(resolve));
            const { own } = await fetcher.fetch(unlistedVideo(`video ${video}`), plan, call);
            return { video, own };
          }),
        );
        const videos = new Set(starts.map(({ video }) => video));
        expect(reads).toBe(videos.size);
        expect(fetched.filter(({ own }) => own)).toHaveLength(videos.size);
      }),
    );
  });
});
