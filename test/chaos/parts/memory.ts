import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { atMost, nothing, type Part } from '../chaos-run.js';
import { Service } from '../harness/service.js';
import { settledState } from '../harness/settled.js';

const MINUTES = 10;
const CALLS_SHORT = 15;
const CALLS_AT_A_TIME = 4;
const VIDEOS = 100;
const CACHE_MEGABYTES = 8;
/** The JSON of the texts that were inflated last. */
const INFLATED_MEGABYTES = 64;
/** The pools, buffers of connections, and other state that does not grow. */
const OTHER_MEGABYTES = 12;
/** A short text, deflated and inflated, with its overhead; a slice of what zlib allocates would keep 16 KB alive. */
const TEXT_MEGABYTES = 0.003;

/** Many short videos, each read once: what the service holds is what its caches count. */
export const memory: Part = async ({ short, folder, database, say }) => {
  const fakeYoutube = await startFakeYoutube();
  const service = await Service.start(folder, {
    DATABASE_URL: await database.create(),
    YOUTUBE_BASE_URL: fakeYoutube.url,
    CACHE_MAX_MEGABYTES: String(CACHE_MEGABYTES),
    UPSTREAM_CONCURRENCY: '50',
  });
  try {
    const { key } = await service.customer('pro', 1_000_000_000);
    const before = await service.collectedBufferBytes();
    const endsAtMs = performance.now() + MINUTES * 60_000;
    const failed: string[] = [];
    let calls = 0;
    let texts = 0;
    const readChannels = async (): Promise<void> => {
      while (short ? calls < CALLS_SHORT : performance.now() < endsAtMs) {
        const call = calls++;
        const path = `/channels/@bench-${VIDEOS + (call % 9_000)}x${1 + Math.floor(call / 9_000)}/transcripts`;
        const { status, text } = await service.get(`${path}?limit=${VIDEOS}`, key, 60_000);
        if (status !== 200) failed.push(`${path}: ${status} ${text.slice(0, 200)}`);
        texts += Number(/"fetched":(\d+)\}/.exec(text.slice(-100))?.[1] ?? 0);
        if (calls % 200 === 0) say(`${calls} calls, ${megabytes(await service.collectedBufferBytes()).toFixed(0)} MB`);
      }
    };
    await Promise.all(Array.from({ length: CALLS_AT_A_TIME }, readChannels));
    const after = await service.collectedBufferBytes();
    const counted = Math.min(CACHE_MEGABYTES + INFLATED_MEGABYTES, texts * TEXT_MEGABYTES);
    return [
      nothing(`calls for ${VIDEOS} short videos that failed, of ${calls}`, failed),
      { name: 'short videos that were read', observed: `${texts}, more than 1000`, passed: texts > 1000 },
      atMost(
        'bytes of Buffers after collection, more than before',
        megabytes(after - before),
        counted + OTHER_MEGABYTES,
        'MB',
      ),
      ...(await settledState(service)),
    ];
  } finally {
    await service.stop();
    await fakeYoutube.close();
  }
};

function megabytes(bytes: number): number {
  return bytes / 1024 / 1024;
}
