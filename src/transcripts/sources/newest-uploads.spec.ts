import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Registry } from 'prom-client';
import { CacheModule } from '../../cache/cache.module.js';
import { Environment } from '../../config/environment.js';
import { UpstreamError } from '../../domain/errors.js';
import { unlistedVideo } from '../../domain/transcript.js';
import { type DescribedPage, type UploadsListPage, VideoPlatform } from '../../platform/video-platform.js';
import { Call } from '../call.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { NewestUploads } from './newest-uploads.js';

const CHANNEL = 'UCcccccccccccccccccccccc';
const MINUTE = 60_000;

let module: TestingModule;
let cache: Cache;
let nowMs: number;
let reads: number;
let descriptions: number;
let answered: () => Promise<void>;
let newest: NewestUploads;
let call: Call;

/** Each read finds one more upload. */
const platform = Object.assign(Object.create(VideoPlatform.prototype) as VideoPlatform, {
  uploads: async (): Promise<UploadsListPage> => {
    const found = ++reads;
    await answered();
    const uploads = Array.from({ length: found }, (_, index) => unlistedVideo(`upload_____${found - index}`));
    return { uploads, next: null, incomplete: false, hidden: 0, pages: 1 };
  },
  describe: (_channelId: string, page: UploadsListPage): Promise<DescribedPage> => {
    descriptions++;
    const uploads = page.uploads.map((upload) => ({ ...upload, kind: 'short' as const }));
    return Promise.resolve({ ...page, uploads, settled: true });
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
  [reads, descriptions] = [0, 0];
  answered = () => Promise.resolve();
  newest = new NewestUploads(cache, platform, new TranscriptMetrics(new Registry()));
  call = new Call(60);
});
afterEach(() => {
  call.finish();
  jest.restoreAllMocks();
});

/** How many uploads a check finds that has been due for so long. */
async function found(dueAgeMs: number): Promise<number> {
  return (await newest.page(CHANNEL, nowMs - dueAgeMs, call)).uploads.length;
}

/** The next readings begin, and are answered when the caller says so. */
function heldReading(): { begun: Promise<void>; answer: () => void } {
  let answer = (): void => undefined;
  const held = new Promise<void>((resolve) => (answer = resolve));
  const begun = new Promise<void>((resolve) => {
    answered = () => {
      resolve();
      return held;
    };
  });
  return { begun, answer };
}

describe('the newest uploads for checks', () => {
  it('are read once for all checks that were due when the reading began, one after the other or at once', async () => {
    expect(await found(MINUTE)).toBe(1);
    nowMs += MINUTE;
    expect(await found(MINUTE)).toBe(1);
    expect(await Promise.all([found(MINUTE), found(5 * MINUTE)])).toEqual([1, 1]);
    expect(await Promise.all([found(0), found(1), found(0)])).toEqual([2, 2, 2]);
    expect(reads).toBe(2);
  });

  it('are read again for a check that became due after the reading began, even while it goes on', async () => {
    const { begun, answer } = heldReading();
    const first = found(MINUTE);
    await begun;
    answered = () => Promise.resolve();
    nowMs += 1;
    expect(await found(0)).toBe(2);
    // A third check, which was due before that, joins neither and needs no reading.
    nowMs += 1;
    expect(await found(1)).toBe(2);
    answer();
    expect(await first).toBe(1);
    expect(reads).toBe(2);
  });

  it('join the reading in progress when that began after the check became due', async () => {
    const { begun, answer } = heldReading();
    const first = found(0);
    await begun;
    nowMs += 500;
    const second = found(500);
    nowMs += 500;
    const third = found(3_000);
    answer();
    expect(await Promise.all([first, second, third])).toEqual([1, 1, 1]);
    expect(reads).toBe(1);
  });

  it('are not taken from a clock that is ahead', async () => {
    nowMs += MINUTE;
    await found(0);
    nowMs -= MINUTE;
    expect(await found(0)).toBe(2);
  });

  it('that could not be read are read by the next check', async () => {
    answered = () => Promise.reject(new UpstreamError('upstream_failure', new Error('no page')));
    await expect(found(MINUTE)).rejects.toMatchObject({ code: 'upstream_failure' });
    answered = () => Promise.resolve();
    expect(await found(MINUTE)).toBe(2);
  });

  it('are described from the page that the check has read, once for all that read the same', async () => {
    expect(await found(MINUTE)).toBe(1);
    const described = await Promise.all(
      [MINUTE, 2 * MINUTE].map((age) => newest.described(CHANNEL, nowMs - age, call)),
    );
    expect(described.map(({ uploads }) => uploads.map(({ kind }) => kind))).toEqual([['short'], ['short']]);
    expect((await newest.described(CHANNEL, nowMs - MINUTE, call)).uploads).toEqual(described[0]?.uploads);
    expect([reads, descriptions]).toEqual([1, 1]);
    nowMs += 1;
    expect((await newest.described(CHANNEL, nowMs, call)).uploads).toHaveLength(2);
    expect([reads, descriptions]).toEqual([2, 2]);
  });
});
