import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { NO_DETAILS, type Upload } from '../../domain/transcript.js';
import type { PlannedVideo } from '../call-plan.js';
import { CachedTextReader } from './cached-text-reader.js';
import { Environment } from '../../config/environment.js';
import { BufferedTexts, ResponseMemory } from '../response/response-memory.js';

const buffered = (): BufferedTexts => new BufferedTexts(new ResponseMemory(new Environment()));
const CHUNK_BYTES = 512 * 1024;

function planned(videoId: string, jsonBytes: number): PlannedVideo {
  const upload: Upload = {
    ...{ videoId, title: null, url: '', publishedAt: null, publishedText: null, durationSeconds: null },
    ...{ viewCount: null, thumbnailUrl: null, kind: null, failure: null },
  };
  return { upload, outcome: { ok: true, details: NO_DETAILS, transcript: { jsonBytes, crc32: jsonBytes } } };
}

describe('the texts that a plan found in another process', () => {
  it('come each to its own video, read once, and never more than two chunks ahead of the reader', async () => {
    const sizes = fc.array(fc.nat({ max: 2 * CHUNK_BYTES }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(), async (lengths, lost) => {
        const videos = lengths.map((length, index) => planned(`v${index}`, length));
        let heldBytes = 0;
        let heldBytesMax = 0;
        const asked: string[] = [];
        const texts = new CachedTextReader(
          videos,
          'json',
          (wanted) => {
            for (const { videoId, transcript } of wanted) {
              asked.push(videoId);
              heldBytes += transcript.jsonBytes;
            }
            heldBytesMax = Math.max(heldBytesMax, heldBytes);
            return Promise.resolve(
              wanted.map(({ videoId, transcript: { jsonBytes, crc32 } }) =>
                videoId === `v${lost % 40}` ? undefined : { bytes: Buffer.from(videoId), jsonBytes, crc32 },
              ),
            );
          },
          buffered(),
        );
        for (const { upload, outcome } of videos) {
          const text = await texts.take(upload.videoId);
          const size = outcome?.ok ? outcome.transcript.jsonBytes : 0;
          expect(text?.bytes.toString()).toBe(upload.videoId === `v${lost % 40}` ? undefined : upload.videoId);
          heldBytes -= size;
        }
        expect(asked).toEqual(videos.map(({ upload }) => upload.videoId));
        // A text that is longer than a chunk is a chunk of its own.
        const chunkMax = Math.max(CHUNK_BYTES, ...lengths);
        expect(heldBytesMax).toBeLessThanOrEqual(2 * chunkMax);
      }),
    );
  });

  it('are not asked for when they are here, and a failure has none', async () => {
    const here = planned('here', 5);
    if (here.outcome?.ok) here.outcome.transcript = { ...here.outcome.transcript, json: Buffer.from('12345') };
    const failed: PlannedVideo = {
      ...planned('failed', 0),
      outcome: { ok: false, details: NO_DETAILS, failure: { code: 'video_private' } },
    };
    const texts = new CachedTextReader([here, failed], 'json', () => Promise.reject(new Error('asked')), buffered());
    expect([await texts.take('here'), await texts.take('failed')]).toEqual([undefined, undefined]);
  });

  it('that were evicted are found at once from the current chunk on, and none of the others is held for it', async () => {
    const videos = ['one', 'two', 'three', 'four'].map((videoId) => planned(videoId, CHUNK_BYTES));
    const memory = new ResponseMemory(new Environment());
    const texts = new CachedTextReader(
      videos,
      'json',
      (wanted) =>
        Promise.resolve(
          wanted.map(({ videoId, transcript: { jsonBytes, crc32 } }) =>
            videoId === 'three' ? { bytes: Buffer.from(videoId), jsonBytes, crc32 } : undefined,
          ),
        ),
      new BufferedTexts(memory),
    );
    expect(await texts.take('one')).toBeUndefined();
    expect(await texts.take('two')).toBeUndefined();
    const heldBytes = memory.heldBytes;
    expect([...(await texts.evicted())]).toEqual(['four']);
    expect(memory.heldBytes).toBe(heldBytes);
    expect((await texts.take('three'))?.bytes.toString()).toBe('three');
  });

  it('that cannot be read ahead are told in their turn, and to nobody before', async () => {
    const unheard: unknown[] = [];
    const note = (reason: unknown): void => void unheard.push(reason);
    process.on('unhandledRejection', note);
    try {
      const videos = [planned('one', CHUNK_BYTES), planned('two', CHUNK_BYTES)];
      const texts = new CachedTextReader(
        videos,
        'json',
        (wanted) =>
          wanted[0]?.videoId === 'two'
            ? Promise.reject(new Error('A bug.'))
            : Promise.resolve([{ bytes: Buffer.from('1'), jsonBytes: 1, crc32: 0 }]),
        buffered(),
      );
      expect((await texts.take('one'))?.bytes.toString()).toBe('1');
      await new Promise((resolve) => setImmediate(resolve));
      expect(unheard).toEqual([]);
      await expect(texts.take('two')).rejects.toThrow('A bug.');
    } finally {
      process.off('unhandledRejection', note);
    }
  });
});
