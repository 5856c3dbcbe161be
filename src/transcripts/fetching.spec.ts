import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { NO_DETAILS, unlistedVideo } from '../domain/transcript.js';
import { Call } from './call.js';
import { Fetching, Slot, type VideoFetcher } from './fetching.js';
import { BufferedTexts, ResponseMemory } from './response/response-memory.js';

Logger.overrideLogger(false);

const EVICTED = { ok: true as const, details: NO_DETAILS, transcript: { jsonBytes: 1, crc32: 1 } };

const fetcher: ConstructorParameters<typeof Fetching>[3] = {
  concurrencyPerCall: 4,
  text: () => Promise.resolve(undefined),
  fetch({ videoId }, _languages, { signal, onRequest }): ReturnType<VideoFetcher['fetch']> {
    if (videoId === 'faulty') return Promise.reject(new TypeError('a bug'));
    if (videoId === 'evicted') return Promise.resolve({ outcome: EVICTED, own: true });
    if (videoId === 'sent') onRequest?.();
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  },
};

async function fetchUntilDisconnect(videoIds: readonly string[], background: boolean) {
  const call = new Call(60, { background });
  const buffered = new BufferedTexts(new ResponseMemory(new Environment()));
  const fetching = new Fetching({ call, languages: [] }, 'json', buffered, fetcher);
  const slots = videoIds.map((videoId) => new Slot(unlistedVideo(videoId)));
  const filled = fetching.fill(slots);
  call.disconnect();
  await filled;
  return { fetching, slots };
}

describe('the fetching of a job', () => {
  it('separates the videos that were not requested from those for which a request was sent', async () => {
    const { fetching, slots } = await fetchUntilDisconnect(['queued', 'sent', 'evicted'], true);
    expect([...fetching.givenUp].sort()).toEqual(['evicted', 'queued']);
    const codes = await Promise.all(slots.map(async ({ entry }) => (await entry).entry));
    expect(codes).toMatchObject([
      { error: { code: 'upstream_timeout' } },
      { error: { code: 'upstream_timeout' } },
      { error: { code: 'upstream_failure' } },
    ]);
  });

  it('fails only the video with which the service has a fault', async () => {
    const { slots } = await fetchUntilDisconnect(['faulty'], true);
    await expect(slots[0]?.entry).resolves.toMatchObject({ entry: { ok: false, error: { code: 'upstream_failure' } } });
  });
});

it('a fault in the service with a video is thrown to the reader of a call', async () => {
  const { slots } = await fetchUntilDisconnect(['faulty'], false);
  await expect(slots[0]?.entry).rejects.toThrow('a bug');
});
