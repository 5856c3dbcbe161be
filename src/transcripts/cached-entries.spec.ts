import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Environment } from '../config/environment.js';
import { NO_DETAILS, type Upload } from '../domain/transcript.js';
import type { SentText } from './cache/transcript-text.js';
import { CachedEntries } from './cached-entries.js';
import { BufferedTexts, ResponseMemory } from './response/response-memory.js';
import type { Entry } from './transcript-events.js';
import type { PlannedVideo } from './transcript-planner.js';

const CHUNK_BYTES = 512 * 1024;

type Wanted = readonly { videoId: string; transcript: { jsonBytes: number; crc32: number } }[];
type ReadTexts = (wanted: Wanted) => Promise<(SentText | undefined)[]>;

function entriesOf(
  videos: PlannedVideo[],
  texts: ReadTexts,
  memory = new ResponseMemory(new Environment()),
): CachedEntries {
  const cache = { texts, evict: () => Promise.resolve() };
  return new CachedEntries({ videos, languages: [] }, 'json', new BufferedTexts(memory), cache);
}

function planned(videoId: string, jsonBytes: number): PlannedVideo {
  const upload: Upload = {
    ...{ videoId, title: null, url: '', publishedAt: null, publishedText: null, durationSeconds: null },
    ...{ viewCount: null, thumbnailUrl: null, kind: null, failure: null },
  };
  return { upload, outcome: { ok: true, details: NO_DETAILS, transcript: { jsonBytes, crc32: jsonBytes } } };
}

function textOf(entry: Entry | undefined): string | undefined {
  return entry?.ok ? entry.transcript.bytes.toString() : undefined;
}

async function entryOf(entries: CachedEntries, videos: readonly PlannedVideo[], videoId: string) {
  const video = videos.find(({ upload }) => upload.videoId === videoId);
  if (!video) throw new Error(`${videoId} is not planned.`);
  return entries.entry(video);
}

describe('the entries of cached videos', () => {
  it('get each their own text, read once, at most two chunks ahead of the reader', async () => {
    const sizes = fc.array(fc.nat({ max: 2 * CHUNK_BYTES }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(), async (lengths, evicted) => {
        const videos = lengths.map((length, index) => planned(`v${index}`, length));
        let bufferedBytes = 0;
        let bufferedBytesMax = 0;
        const read: string[] = [];
        const entries = entriesOf(videos, (wanted) => {
          for (const { videoId, transcript } of wanted) {
            read.push(videoId);
            bufferedBytes += transcript.jsonBytes;
          }
          bufferedBytesMax = Math.max(bufferedBytesMax, bufferedBytes);
          return Promise.resolve(
            wanted.map(({ videoId, transcript: { jsonBytes, crc32 } }) =>
              videoId === `v${evicted % 40}` ? undefined : { bytes: Buffer.from(videoId), jsonBytes, crc32 },
            ),
          );
        });
        for (const video of videos) {
          const { videoId } = video.upload;
          const size = video.outcome?.ok ? video.outcome.transcript.jsonBytes : 0;
          expect(textOf(await entries.entry(video))).toBe(videoId === `v${evicted % 40}` ? undefined : videoId);
          bufferedBytes -= size;
        }
        expect(read).toEqual(videos.map(({ upload }) => upload.videoId));
        // A text that is longer than a chunk is a chunk of its own.
        const chunkMax = Math.max(CHUNK_BYTES, ...lengths);
        expect(bufferedBytesMax).toBeLessThanOrEqual(2 * chunkMax);
      }),
    );
  });

  it('are not read from the cache when the plan contains the text, or for a failure', async () => {
    const pinned = planned('pinned', 5);
    if (pinned.outcome?.ok) pinned.outcome.transcript = { ...pinned.outcome.transcript, json: Buffer.from('12345') };
    const failed: PlannedVideo = {
      ...planned('failed', 0),
      outcome: { ok: false, details: NO_DETAILS, failure: { code: 'video_private' } },
    };
    const entries = entriesOf([pinned, failed], () => Promise.reject(new Error('read')));
    expect(textOf(await entries.entry(pinned))).toBe('12345');
    expect(await entries.entry(failed)).toMatchObject({ ok: false, error: { code: 'video_private' } });
  });

  it('release the text of the plan once they are returned', async () => {
    const pinned = planned('pinned', 5);
    if (pinned.outcome?.ok) pinned.outcome.transcript = { ...pinned.outcome.transcript, json: Buffer.from('12345') };
    await entriesOf([pinned], () => Promise.resolve([])).entry(pinned);
    expect(pinned.outcome).toMatchObject({ transcript: { jsonBytes: 5, crc32: 5 } });
    expect(pinned.outcome?.ok && pinned.outcome.transcript.json).toBeUndefined();
  });

  it('whose texts were evicted are all found from the current chunk on, without buffering the others', async () => {
    const videos = ['one', 'two', 'three', 'four'].map((videoId) => planned(videoId, CHUNK_BYTES));
    const memory = new ResponseMemory(new Environment());
    const entries = entriesOf(
      videos,
      (wanted) =>
        Promise.resolve(
          wanted.map(({ videoId, transcript: { jsonBytes, crc32 } }) =>
            videoId === 'three' ? { bytes: Buffer.from(videoId), jsonBytes, crc32 } : undefined,
          ),
        ),
      memory,
    );
    expect(await entryOf(entries, videos, 'one')).toBeUndefined();
    expect(await entryOf(entries, videos, 'two')).toBeUndefined();
    const bytesBefore = memory.heldBytes;
    expect([...(await entries.evicted())]).toEqual(['four']);
    expect(memory.heldBytes).toBe(bytesBefore);
    expect(textOf(await entryOf(entries, videos, 'three'))).toBe('three');
  });

  it('report a failure to read ahead when they are requested, and as no unhandled rejection before', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      const videos = [planned('one', CHUNK_BYTES), planned('two', CHUNK_BYTES)];
      const entries = entriesOf(videos, (wanted) =>
        wanted[0]?.videoId === 'two'
          ? Promise.reject(new Error('A bug.'))
          : Promise.resolve([{ bytes: Buffer.from('1'), jsonBytes: 1, crc32: 0 }]),
      );
      expect(textOf(await entryOf(entries, videos, 'one'))).toBe('1');
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
      await expect(entryOf(entries, videos, 'two')).rejects.toThrow('A bug.');
    } finally {
      process.off('unhandledRejection', note);
    }
  });
});
