import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Registry } from 'prom-client';
import { CacheModule } from '../../cache/cache.module.js';
import { Environment } from '../../config/environment.js';
import { unlistedVideo, type Upload, type VideoKind } from '../../domain/transcript.js';
import {
  ContinuationRejectedError,
  type DescribedPage,
  type UploadsListPage,
  VideoPlatform,
} from '../../platform/video-platform.js';
import { Call } from '../call.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { ChannelUploads } from './channel-uploads.js';
import type { Selection } from './counted-list.js';

const CHANNEL = { id: 'UCcccccccccccccccccccccc', name: 'a channel', handle: null };
const PAGE_SIZE = 10;
const AT = '2026-05-21T11:22:05Z';

let module: TestingModule;
let cache: Cache;
let call: Call;
let nowMs: number;
let listed: Upload[];
/** What was requested: `0` for the first page, the place of a later one, `described`. */
let requested: string[];
let settled: boolean;
let refuses: boolean;
/** Where the list ends with what cannot be read; null at its end. */
let unreadableAt: number | null;
let channels: ChannelUploads;

const id = (number: number) => `upload${String(number).padStart(5, '0')}`;
const uploadsOf = (count: number, kind: VideoKind | null = null): Upload[] =>
  Array.from({ length: count }, (_, number) => ({ ...unlistedVideo(id(number)), kind }));

const platform = Object.assign(Object.create(VideoPlatform.prototype) as VideoPlatform, {
  readChannel: () => Promise.resolve(CHANNEL),
  uploads: (_channelId: string, after = '0'): Promise<UploadsListPage> => {
    requested.push(after);
    if (after !== '0' && refuses) return Promise.reject(new ContinuationRejectedError());
    const end = Number(after) + PAGE_SIZE;
    const uploads = listed.slice(Number(after), end);
    if (unreadableAt !== null && end >= unreadableAt)
      return Promise.resolve({ uploads, next: null, incomplete: true, hidden: null, pages: 1 });
    const next = end < listed.length ? String(end) : null;
    return Promise.resolve({ uploads, next, incomplete: false, hidden: next === null ? 0 : null, pages: 1 });
  },
  describe: async (_channelId: string, page: UploadsListPage | Promise<UploadsListPage>): Promise<DescribedPage> => {
    requested.push('described');
    const read = await page;
    const uploads = read.uploads.map(
      (upload) => ({ ...upload, kind: upload.kind ?? 'short', publishedAt: AT }) as const,
    );
    return { ...read, uploads, settled };
  },
});

beforeAll(async () => {
  module = await Test.createTestingModule({ imports: [CacheModule.forRoot(new Environment())] }).compile();
  cache = module.get<Cache>(CACHE_MANAGER);
});
afterAll(() => module.close());

beforeEach(async () => {
  await cache.clear();
  nowMs = 1_800_000_000_000;
  jest.spyOn(Date, 'now').mockImplementation(() => nowMs);
  [listed, requested, settled, refuses, unreadableAt] = [uploadsOf(5), [], true, false, null];
  channels = new ChannelUploads(cache, platform, new Environment(), new TranscriptMetrics(new Registry()));
  call = new Call(60);
});
afterEach(() => {
  call.finish();
  jest.restoreAllMocks();
});

/** The uploads of a call, and what it requested. */
async function read(selection: Selection = { limit: 5 }) {
  requested = [];
  const { uploads } = await channels.source(CHANNEL.id, selection)(call);
  return { uploads: [...uploads], requested };
}

describe('the uploads of a channel', () => {
  it('are described as they are read, and not read again for two minutes', async () => {
    const first = await read();
    expect(first.uploads).toMatchObject(Array(5).fill({ kind: 'short', publishedAt: AT }));
    expect(first.requested).toEqual(['0', 'described']);
    nowMs += 119_000;
    expect(await read()).toEqual({ uploads: first.uploads, requested: [] });
  });

  it('cost one request while nothing is new, and keep their kinds and dates', async () => {
    const { uploads } = await read();
    nowMs += 121_000;
    expect(await read()).toEqual({ uploads, requested: ['0'] });
  });

  it.each<[string, () => void]>([
    ['there is a new one', () => listed.unshift({ ...unlistedVideo('new________'), kind: null })],
    ['a stream has ended', () => listed.splice(0, 1, { ...unlistedVideo(id(0)), kind: null })],
    ['there are fewer than before', () => listed.pop()],
  ])('are described again when %s', async (_, change) => {
    listed[0] = { ...unlistedVideo(id(0)), kind: 'live' };
    await read();
    change();
    nowMs += 121_000;
    expect((await read()).requested).toEqual(['0', 'described']);
  });

  it('are described again when the kinds could not be read', async () => {
    settled = false;
    await read();
    nowMs += 121_000;
    expect((await read()).requested).toEqual(['0', 'described']);
  });

  it('are counted page by page, and read on for a call that needs more', async () => {
    listed = uploadsOf(35);
    expect((await read({ limit: 15 })).requested).toEqual(['0', 'described', '10']);
    expect((await read({ limit: 20 })).requested).toEqual([]);
    const all = await read({ limit: 100 });
    expect([all.uploads.map(({ videoId }) => videoId), all.requested]).toEqual([
      listed.map(({ videoId }) => videoId),
      ['20', '30'],
    ]);
  });

  it('are read on from the first page for kinds, whose length tells a video', async () => {
    listed = [...uploadsOf(12), ...uploadsOf(30).slice(12)].map((upload, index) =>
      index < PAGE_SIZE ? upload : { ...upload, kind: index % 10 === 0 ? null : 'video' },
    );
    const { uploads, requested: asked } = await read({ limit: 12, kinds: ['short'] });
    expect(asked).toEqual(['0', 'described', '10', '20']);
    expect(uploads.map(({ videoId }) => videoId)).toEqual([...Array.from({ length: 11 }, (_, at) => id(at)), id(20)]);
  });

  it('are read anew when the platform refuses to go on, and not read when it always does', async () => {
    listed = uploadsOf(35);
    await read({ limit: 10 });
    refuses = true;
    const again = read({ limit: 11 });
    await expect(again).rejects.toMatchObject({ code: 'upstream_failure' });
    expect(requested).toEqual(['10', '0', '10']);
  });

  it('that end with what cannot be read serve what does not need it', async () => {
    unreadableAt = 10;
    listed = uploadsOf(8);
    expect((await read({ limit: 8 })).uploads).toHaveLength(8);
    await expect(read({ limit: 9 })).rejects.toMatchObject({ code: 'upstream_failure' });
  });
});
