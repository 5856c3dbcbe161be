import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { anyText } from '../../../test/texts/any-text.js';
import { CacheModule } from '../../cache/cache.module.js';
import { Environment } from '../../config/environment.js';
import {
  NO_DETAILS,
  unlistedVideo,
  VIDEO_FAILURE_CODES,
  VIDEO_FAILURES,
  VIDEO_KINDS,
  type VideoDetails,
  type VideoFailureCode,
  type VideoKind,
  type VideoOutcome,
} from '../../domain/transcript.js';
import { KeyedCodec } from './keyed-codec.js';
import { asCachedOutcome, TranscriptCache, type CachedOutcome } from './transcript-cache.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import { deflate, inflate, jsonOf, readTranscript } from './transcript-text.js';

const LANGUAGES = ['en', 'de'];
const environment = Object.assign(new Environment(), { TRANSCRIPT_TTL_SECONDS: 200_000, UNAVAILABLE_TTL_SECONDS: 400 });

let module: TestingModule;
let cache: Cache;
let transcripts: TranscriptCache;
let success: CachedOutcome;

beforeAll(async () => {
  module = await Test.createTestingModule({ imports: [CacheModule.forRoot(environment)] }).compile();
  cache = module.get<Cache>(CACHE_MANAGER);
  success = await asCachedOutcome({
    ok: true,
    tracks: { en: { name: 'English', generated: false } },
    details: NO_DETAILS,
    transcript: new Map([['en', [{ text: 'Hello\nharbour', start: 0.5, duration: 2 }]]]),
  });
  transcripts = new TranscriptCache(cache, environment, new TranscriptMetrics(new Registry()));
});
afterAll(() => module.close());
beforeEach(() => cache.clear());

const text = anyText({ maxLength: 30 });
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value));
const anyDetails: fc.Arbitrary<VideoDetails> = fc.record(
  {
    title: fc.option(text),
    thumbnailUrl: fc.option(text),
    publishedAt: fc.option(text),
    durationSeconds: fc.option(number),
    viewCount: fc.option(fc.nat()),
    kind: fc.option(fc.constantFrom(...VIDEO_KINDS)),
    channel: fc.option(fc.record({ id: text, name: text }, { noNullPrototype: true })),
    description: fc.option(text),
    tags: fc.option(fc.array(text, { maxLength: 3 })),
    captionTracks: fc.option(
      fc.array(fc.record({ languageCode: text, name: text, generated: fc.boolean() }, { noNullPrototype: true }), {
        maxLength: 3,
      }),
    ),
  },
  { noNullPrototype: true },
);
const anyTranscript = fc.array(
  fc.tuple(text, fc.array(fc.record({ text, start: number, duration: number }), { maxLength: 5 })),
  { minLength: 1, maxLength: 3 },
);
const anySuccess: fc.Arbitrary<VideoOutcome> = fc
  .tuple(anyDetails, anyTranscript)
  .map(([details, transcript]) => ({ ok: true, details, transcript: new Map(transcript), tracks: {} }));
const lastingCodes = VIDEO_FAILURE_CODES.filter((code) => !VIDEO_FAILURES[code].retryable);
const anyLastingFailure: fc.Arbitrary<VideoOutcome> = fc
  .tuple(anyDetails, fc.constantFrom(...lastingCodes), fc.option(text, { nil: undefined }))
  .map(([details, code, message]) => ({
    ok: false,
    details,
    failure: message === undefined ? { code } : { code, message },
  }));
const failure: CachedOutcome = {
  ok: false,
  details: NO_DETAILS,
  failure: { code: 'transcript_unavailable' },
};

const DAY = 86_400;
/** The stored bytes of an outcome. */
async function storedBytes(outcome: CachedOutcome): Promise<Buffer> {
  await transcripts.store(unlistedVideo('video'), LANGUAGES, outcome);
  return (await cache.get<Buffer>(transcripts.key('video', LANGUAGES))) ?? Buffer.alloc(0);
}

async function found(videoId: string, languages = LANGUAGES): Promise<CachedOutcome | undefined> {
  const [outcome] = await transcripts.getMany([videoId], languages);
  return outcome;
}

/** Stores a value in place of the entry of a video, and looks the video up. */
async function lookUp(stored: unknown): Promise<CachedOutcome | undefined> {
  await cache.set(transcripts.key('video', LANGUAGES), stored, 60_000);
  return found('video');
}

describe('a cached outcome', () => {
  it('is returned as it was stored, for any outcome', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(anySuccess, anyLastingFailure), async (read) => {
        await cache.clear();
        const outcome = await asCachedOutcome(read);
        await transcripts.store(unlistedVideo('video'), LANGUAGES, outcome);
        const known = await found('video');
        expect(known).toEqual(outcome);
        if (read.ok && known?.ok) expect(await inflate(known.transcript)).toEqual(await jsonOf(read.transcript));
      }),
    );
  });

  it('belongs to one video and one list of languages in their order', async () => {
    await transcripts.store(unlistedVideo('one'), ['en', 'de'], success);
    await transcripts.store(unlistedVideo('two'), ['en', 'de'], failure);
    expect(await transcripts.getMany(['two', 'none', 'one'], ['en', 'de'])).toEqual([failure, undefined, success]);
    for (const languages of [[], ['en'], ['de', 'en']]) expect(await found('one', languages)).toBeUndefined();
  });

  it('that is a failure counts for a video that is tried again for ten seconds, and a transcript always', async () => {
    await transcripts.store(unlistedVideo('one'), LANGUAGES, success);
    await transcripts.store(unlistedVideo('two'), LANGUAGES, failure);
    const at = async (seconds: number, again: string[]) => {
      const nowMs = Date.now() + seconds * 1_000;
      const clock = jest.spyOn(Date, 'now').mockImplementation(() => nowMs);
      const outcomes = await transcripts.getMany(['one', 'two'], LANGUAGES, new Set(again));
      clock.mockRestore();
      return outcomes;
    };
    expect(await at(9, ['one', 'two'])).toEqual([success, failure]);
    expect(await at(11, ['one', 'two'])).toEqual([success, undefined]);
    expect(await at(11, ['one'])).toEqual([success, failure]);
  });

  it.each(VIDEO_FAILURE_CODES)('is stored for %s unless a retry can succeed', async (code) => {
    await transcripts.store(unlistedVideo('video'), LANGUAGES, { ok: false, details: NO_DETAILS, failure: { code } });
    const stored = (await found('video')) !== undefined;
    expect(stored).toBe(!VIDEO_FAILURES[code].retryable);
  });

  interface Facts {
    /** Its age in seconds by the list, by the text of the list, and by the video itself. */
    listed?: number;
    text?: string;
    own?: number;
    /** What the list states it to be. */
    kind?: VideoKind;
    code?: VideoFailureCode;
    confirmed?: boolean;
  }
  const code = 'transcript_unavailable';
  it.each<[what: string, ttlSeconds: number, facts: Facts]>([
    ['a transcript of unknown age', DAY, {}],
    ['a transcript of a video that is younger than three days', DAY, { listed: 3 * DAY - 600 }],
    ['a transcript of an older video', 200_000, { listed: 3 * DAY }],
    ['a transcript of an older video by the text of its list', 200_000, { text: '3 weeks ago' }],
    ['a failure of unknown age', 400, { code }],
    ['a failure of a video in its first day by its list', 400, { code, listed: DAY - 600 }],
    ['a failure of a video in its first day by itself', 400, { code, own: DAY - 600 }],
    ['a failure of a video in its first week by its list', 400 * 24, { code, listed: DAY }],
    ['a failure of a video in its first week by itself', 400 * 24, { code, own: 7 * DAY - 600 }],
    ['a failure of an older video by its list', 400 * 168, { code, listed: 7 * DAY }],
    ['a failure of an older video by the text of its list', 400 * 168, { code, text: '3 weeks ago' }],
    ['a failure of an older video by itself', 400 * 168, { code, own: 7 * DAY }],
    ['a failure of a stream that was announced long ago', 400, { code, listed: 30 * DAY, kind: 'live' }],
    ['any final failure', 400 * 168, { code: 'video_age_restricted', text: '3 weeks ago' }],
    ['an unconfirmed failure, at most five minutes', 300, { code, text: '3 weeks ago', confirmed: false }],
  ])(
    'has the time to live of %s',
    async (_what, ttlSeconds, { listed, text: publishedText = null, own, kind = null, ...failed }) => {
      const beforeMs = Date.now();
      const publishedAt = (seconds?: number) =>
        seconds === undefined ? null : new Date(beforeMs - seconds * 1_000).toISOString();
      const details = { ...NO_DETAILS, publishedAt: publishedAt(own) };
      const { code: failureCode, confirmed = true } = failed;
      const outcome: CachedOutcome = failureCode
        ? { ok: false, details, failure: { code: failureCode }, confirmed }
        : { ...success, details };
      const video = { ...unlistedVideo('video'), publishedAt: publishedAt(listed), publishedText, kind };
      await transcripts.store(video, LANGUAGES, outcome);
      const afterMs = Date.now();
      const endsAtMs = (await cache.ttl(transcripts.key('video', LANGUAGES))) ?? 0;
      expect(endsAtMs).toBeGreaterThanOrEqual(beforeMs + ttlSeconds * 1_000);
      expect(endsAtMs).toBeLessThanOrEqual(afterMs + ttlSeconds * 1_000);
    },
  );
});

describe('an unreadable entry counts as missing:', () => {
  it('a value that is truncated or damaged at any byte', async () => {
    for (const outcome of [success, failure]) {
      const stored = await storedBytes(outcome);
      for (let index = 0; index < stored.length; index++) {
        const damaged = Buffer.from(stored);
        damaged[index] = (damaged[index] ?? 0) ^ 0x55;
        expect([await lookUp(stored.subarray(0, index)), await lookUp(damaged)]).toEqual([undefined, undefined]);
      }
    }
  });

  it.each([
    ['of another kind', { uploads: [], complete: true }],
    ['with a length that is text', { details: NO_DETAILS, jsonBytes: '2', crc32: 5 }],
    ['with a negative length', { details: NO_DETAILS, jsonBytes: -2, crc32: 5 }],
    ['with an unknown kind', { details: { ...NO_DETAILS, kind: 'podcast' }, jsonBytes: 2, crc32: 5 }],
    ['with a failure that names a property of every object', { details: {}, code: 'constructor', message: null }],
  ])('an intact entry %s', async (_case, value) => {
    const codec = new KeyedCodec(z.unknown(), () => undefined);
    expect(await lookUp(codec.write(transcripts.key('video', LANGUAGES), value))).toBeUndefined();
  });

  it('the entry of another video', async () => {
    for (const outcome of [success, failure]) {
      await transcripts.store(unlistedVideo('other'), LANGUAGES, outcome);
      const stored = await cache.get<Buffer>(transcripts.key('other', LANGUAGES));
      expect(await found('other')).toEqual(outcome);
      expect(await lookUp(stored)).toBeUndefined();
    }
  });
});

describe('the text of a transcript', () => {
  it('is refused when it is damaged, of another length or of another checksum', async () => {
    const text = await deflate(Buffer.from('{"en":[]}'));
    const damaged = [
      { ...text, deflated: text.deflated.subarray(0, 5) },
      { ...text, deflated: Buffer.from('not deflated') },
      { ...text, jsonBytes: text.jsonBytes - 1 },
      { ...text, jsonBytes: text.jsonBytes + 1 },
      { ...text, crc32: text.crc32 ^ 1 },
    ];
    for (const other of damaged) await expect(inflate(other)).rejects.toThrow();
    expect((await inflate(text)).toString()).toBe('{"en":[]}');
  });

  it('has its own bytes, deflated and inflated: a slice would keep 16 KB of zlib alive for each short video', async () => {
    for (const words of [1, 10, 400]) {
      const text = await deflate(
        await jsonOf(new Map([['en', [{ text: 'tide '.repeat(words), start: 0, duration: 1 }]]])),
      );
      await inflate(text);
      for (const stored of [text.deflated, await inflate(text)])
        expect(stored.buffer.byteLength).toBe(stored.byteLength);
    }
  });

  it('is read in parts as it was written, also when its captions contain what ends a part', async () => {
    const hostile = ['},{"text":', '"},{"text":"', '}]}', '\\"},{', '],"de":[', '😀\ud83d', ''];
    const segments = Array.from({ length: 5_000 }, (_segment, index) => ({
      text: `${hostile[index % hostile.length] ?? ''}${'x'.repeat(index % 300)}`,
      start: index,
      duration: 1,
    }));
    const transcript = new Map([
      ['en', segments],
      ['none', []],
      ['de', segments.slice(7)],
    ]);
    const json = await jsonOf(transcript);
    expect(json.toString()).toBe(JSON.stringify(Object.fromEntries(transcript)));
    const read = await readTranscript(json);
    expect([...read]).toEqual([...transcript]);
    expect(await readTranscript(await jsonOf(new Map()))).toEqual(new Map());
  });
});
