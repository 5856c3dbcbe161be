import { constants, inflateRawSync } from 'node:zlib';
import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { anyText } from '../../../test/any-text.js';
import { CacheModule } from '../../cache/cache.module.js';
import { MemoryStore } from '../../cache/memory-store.js';
import { SharedCache } from '../../cache/shared-cache.js';
import { Environment } from '../../config/environment.js';
import {
  NO_DETAILS,
  VIDEO_FAILURE_CODES,
  VIDEO_FAILURES,
  VIDEO_KINDS,
  type VideoDetails,
} from '../../domain/transcript.js';
import { asCachedOutcome, TranscriptCache, type CachedOutcome } from './transcript-cache.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import type { SentText, TextForm, TranscriptText } from './transcript-text.js';

const LANGUAGES = ['en', 'de'];
const environment = Object.assign(new Environment(), { TRANSCRIPT_TTL_SECONDS: 500, UNAVAILABLE_TTL_SECONDS: 400 });

let module: TestingModule;
let cache: Cache;
let transcripts: TranscriptCache;

beforeAll(async () => {
  module = await Test.createTestingModule({ imports: [CacheModule.forRoot(environment)] }).compile();
  cache = module.get<Cache>(CACHE_MANAGER);
  transcripts = new TranscriptCache(
    cache,
    environment,
    new TranscriptMetrics(new Registry()),
    module.get(SharedCache),
    module.get(MemoryStore),
  );
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
    viewCount: fc.option(number),
    kind: fc.option(fc.constantFrom(...VIDEO_KINDS)),
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
const anySuccess: fc.Arbitrary<CachedOutcome> = fc
  .tuple(anyDetails, anyTranscript)
  .map(([details, transcript]) => asCachedOutcome({ ok: true, details, transcript: new Map(transcript) }));
const lastingCodes = VIDEO_FAILURE_CODES.filter((code) => !VIDEO_FAILURES[code].retryable);
const anyLastingFailure: fc.Arbitrary<CachedOutcome> = fc
  .tuple(anyDetails, fc.constantFrom(...lastingCodes), fc.option(text, { nil: undefined }))
  .map(([details, code, message]) => ({
    ok: false,
    details,
    failure: message === undefined ? { code } : { code, message },
  }));
const success: CachedOutcome = asCachedOutcome({
  ok: true,
  details: NO_DETAILS,
  transcript: new Map([['en', [{ text: 'Hello\nharbour', start: 0.5, duration: 2 }]]]),
});
const failure: CachedOutcome = { ok: false, details: NO_DETAILS, failure: { code: 'transcript_unavailable' } };

const PRIVATE = { failure: { code: 'video_private' } } as const;

function publishedBefore(seconds: number): VideoDetails {
  return { ...NO_DETAILS, publishedAt: new Date(Date.now() - seconds * 1_000).toISOString() };
}

/** The stored bytes of an outcome. */
async function storedBytes(outcome: CachedOutcome): Promise<Buffer> {
  await transcripts.store('video', LANGUAGES, outcome);
  return (await cache.get<Buffer>(transcripts.key('video', LANGUAGES))) ?? Buffer.alloc(0);
}

/** Stores a value in place of the outcome of a video, beside its text, and looks the video up. */
async function lookUp(stored: unknown, text = success): Promise<unknown[]> {
  await transcripts.store('video', LANGUAGES, text);
  await cache.del(transcripts.key('video', LANGUAGES));
  await cache.set(transcripts.key('video', LANGUAGES), stored, 60_000);
  return [await transcripts.get('video', LANGUAGES), ...(await transcripts.getMany(['video'], LANGUAGES))];
}

describe('a transcript that is far longer as JSON than as captions', () => {
  it('is a failure', () => {
    const text = '\u0001'.repeat(1_500_000);
    const transcript = new Map([['en', [{ text, start: 0, duration: 1 }]]]);
    expect(asCachedOutcome({ ok: true, details: NO_DETAILS, transcript })).toMatchObject({
      ok: false,
      failure: { code: 'upstream_failure' },
    });
  });
});

describe('a cached outcome', () => {
  it('is returned as it was stored, for any outcome', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(anySuccess, anyLastingFailure), async (outcome) => {
        await cache.clear();
        await transcripts.store('video', LANGUAGES, outcome);
        expect(await transcripts.get('video', LANGUAGES)).toEqual(outcome);
        expect(await transcripts.getMany(['video'], LANGUAGES)).toEqual([outcome]);
      }),
    );
  });

  it('belongs to one video and one list of languages in their order', async () => {
    await transcripts.store('one', ['en', 'de'], success);
    await transcripts.store('two', ['en', 'de'], failure);
    expect(await transcripts.getMany(['two', 'none', 'one'], ['en', 'de'])).toEqual([failure, undefined, success]);
    for (const languages of [[], ['en'], ['de', 'en']]) expect(await transcripts.get('one', languages)).toBeUndefined();
  });

  it('is looked up in one round trip for a hundred videos, and in none for no video', async () => {
    const many = jest.spyOn(MemoryStore.prototype, 'getMany');
    const single = jest.spyOn(MemoryStore.prototype, 'get');
    try {
      const outcomes = await transcripts.getMany(
        Array.from({ length: 100 }, (_, index) => `video ${index}`),
        LANGUAGES,
      );
      expect(outcomes).toEqual(Array(100).fill(undefined));
      expect([many.mock.calls.length, single.mock.calls.length]).toEqual([1, 0]);
      expect(await transcripts.getMany([], LANGUAGES)).toEqual([]);
      expect(many.mock.calls).toHaveLength(1);
    } finally {
      many.mockRestore();
      single.mockRestore();
    }
  });

  it('is looked up again at once when anything in the cache has changed, and not before', async () => {
    const many = jest.spyOn(MemoryStore.prototype, 'getMany');
    const both = async (): Promise<unknown[]> => {
      many.mockClear();
      return [...(await transcripts.getMany(['one', 'two'], LANGUAGES)), many.mock.calls.length];
    };
    try {
      for (const video of ['one', 'two']) await transcripts.store(video, LANGUAGES, success);
      expect(await both()).toEqual([success, success, 1]);
      expect(await both()).toEqual([success, success, 0]);
      await cache.set('other', Buffer.alloc(1));
      expect(await both()).toEqual([success, success, 1]);
      await transcripts.store('one', LANGUAGES, failure);
      expect(await both()).toEqual([failure, success, 1]);
      await cache.del(`${transcripts.key('two', LANGUAGES)}:json`);
      expect(await both()).toEqual([failure, undefined, 1]);
      // A video that is missing may be stored by any call.
      expect(await both()).toEqual([failure, undefined, 1]);
      await transcripts.store('two', LANGUAGES, success);
      expect(await both()).toEqual([failure, success, 1]);
      expect(await transcripts.getMany(['two', 'one'], LANGUAGES)).toEqual([success, failure]);
      expect(await transcripts.getMany(['one', 'two'], ['fr'])).toEqual([undefined, undefined]);
      await cache.clear();
      expect(await both()).toEqual([undefined, undefined, 1]);
    } finally {
      many.mockRestore();
    }
  });

  it.each(VIDEO_FAILURE_CODES)('is stored for %s unless a retry can succeed', async (code) => {
    await transcripts.store('video', LANGUAGES, { ok: false, details: NO_DETAILS, failure: { code } });
    const stored = (await transcripts.get('video', LANGUAGES)) !== undefined;
    expect(stored).toBe(!VIDEO_FAILURES[code].retryable);
  });

  it.each([
    ['a transcript', success, environment.TRANSCRIPT_TTL_SECONDS],
    ['a failure', failure, environment.UNAVAILABLE_TTL_SECONDS],
    ['an unconfirmed failure, which is at most five minutes', { ...failure, confirmed: false }, 300],
    ['a video without captions that is older than a day', { ...failure, details: publishedBefore(86_401) }, 400],
    ['one that is younger, which is at most five minutes', { ...failure, details: publishedBefore(86_000) }, 300],
    ['a young video that is private', { ...failure, ...PRIVATE, details: publishedBefore(60) }, 400],
  ])('has the configured time to live for %s', async (_kind, outcome, ttlSeconds) => {
    const beforeMs = Date.now();
    await transcripts.store('video', LANGUAGES, outcome);
    const afterMs = Date.now();
    const endsAtMs = (await cache.ttl(transcripts.key('video', LANGUAGES))) ?? 0;
    expect(endsAtMs).toBeGreaterThanOrEqual(beforeMs + ttlSeconds * 1_000);
    expect(endsAtMs).toBeLessThanOrEqual(afterMs + ttlSeconds * 1_000);
  });

  it('of a young video without captions lives for five minutes at most, also when only the list has its date', async () => {
    const { publishedAt } = publishedBefore(3_600);
    await transcripts.store('video', LANGUAGES, failure, publishedAt);
    expect(await cache.ttl(transcripts.key('video', LANGUAGES))).toBeLessThanOrEqual(Date.now() + 300_000);
  });
});

describe('an unreadable entry counts as missing:', () => {
  it('a value that is truncated at any byte', async () => {
    for (const outcome of [success, failure]) {
      const stored = await storedBytes(outcome);
      for (let length = 0; length < stored.length; length++)
        expect(await lookUp(stored.subarray(0, length), outcome)).toEqual([undefined, undefined]);
    }
  });

  it('a value with trailing bytes', async () => {
    for (const outcome of [success, failure])
      expect(await lookUp(Buffer.concat([await storedBytes(outcome), Buffer.from('}')]))).toEqual([
        undefined,
        undefined,
      ]);
  });

  it('random bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        expect(await lookUp(Buffer.from(bytes))).toEqual([undefined, undefined]);
      }),
    );
  });

  it('any other JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ maxDepth: 2 }), async (json) => {
        expect(await lookUp(Buffer.from(json))).toEqual([undefined, undefined]);
      }),
    );
  });

  it.each([
    ['of an older version', { details: NO_DETAILS, bodyBytes: 2 }],
    ['with another head', { details: null, jsonBytes: 2, crc32: 5 }],
    ['without a length', { details: NO_DETAILS, crc32: 5 }],
    ['with a length that is text', { details: NO_DETAILS, jsonBytes: '2', crc32: 5 }],
    ['with the checksum of another text', { details: NO_DETAILS, jsonBytes: 52, crc32: 5 }],
    ['with an unknown kind', { details: { ...NO_DETAILS, kind: 'podcast' }, jsonBytes: 2, crc32: 5 }],
    ['with an unknown failure', { details: NO_DETAILS, code: 'video_haunted', message: null }],
    ['with a failure that names a property of every object', { details: {}, code: 'constructor', message: null }],
  ])('an entry %s', async (_case, value) => {
    const stored = { key: transcripts.key('video', LANGUAGES), value };
    expect(await lookUp(Buffer.from(JSON.stringify(stored)))).toEqual([undefined, undefined]);
  });

  it.each([['text'], [5], [{ ok: true }], [new Uint8Array(3)], [true], [null]])(
    '%j, which is no Buffer',
    async (stored) => {
      expect(await lookUp(stored)).toEqual([undefined, undefined]);
    },
  );

  it('the outcome of another video whose text is cached too', async () => {
    for (const outcome of [success, failure]) {
      await transcripts.store('other', LANGUAGES, outcome);
      const stored = await cache.get<Buffer>(transcripts.key('other', LANGUAGES));
      expect(await transcripts.get('other', LANGUAGES)).toEqual(outcome);
      expect(await lookUp(stored)).toEqual([undefined, undefined]);
    }
  });

  it('one of several, without affecting the others', async () => {
    await transcripts.store('good', LANGUAGES, success);
    await cache.set(transcripts.key('bad', LANGUAGES), Buffer.from('{'), 60_000);
    expect(await transcripts.getMany(['bad', 'good'], LANGUAGES)).toEqual([undefined, success]);
  });
});

describe('the text of a transcript', () => {
  const key = (form: TextForm): string => `${transcripts.key('video', LANGUAGES)}:${form}`;
  const known = async (): Promise<TranscriptText> => {
    const outcome = await transcripts.get('video', LANGUAGES);
    if (!outcome?.ok) throw new Error('The transcript is not cached.');
    return outcome.transcript;
  };
  const sentAs = async (form: TextForm, transcript: TranscriptText): Promise<SentText | undefined> =>
    (await transcripts.texts([{ videoId: 'video', transcript }], LANGUAGES, form))[0];

  it('is deflated once for concurrent and later calls', async () => {
    await transcripts.store('video', LANGUAGES, success);
    const first = await known();
    const texts = await Promise.all(Array.from({ length: 5 }, () => sentAs('deflated', first)));
    const again = await sentAs('deflated', await known());
    const [one] = texts;
    expect(inflateRawSync(one?.bytes ?? '', { finishFlush: constants.Z_SYNC_FLUSH }).toString()).toBe(
      first.json?.toString(),
    );
    for (const text of texts) expect(text?.bytes).toBe(one?.bytes);
    expect(again?.bytes.equals(one?.bytes ?? Buffer.alloc(0))).toBe(true);
    // The cached bytes, and not deflated again.
    expect(again?.bytes.buffer).toBe((await cache.get<Buffer>(key('deflated')))?.buffer);
  });

  it.each(['json', 'deflated'] as const)(
    'counts as missing when its %s is damaged at any byte or truncated',
    async (form) => {
      await transcripts.store('video', LANGUAGES, success);
      await sentAs('deflated', await known());
      const intact = await cache.get<Buffer>(key(form));
      if (!intact) throw new Error('The text is not stored.');
      for (let index = 0; index < intact.length; index++) {
        const damaged = Buffer.from(intact);
        damaged[index] = (damaged[index] ?? 0) ^ 0x55;
        for (const stored of [damaged, intact.subarray(0, index)]) {
          await cache.set(key(form), stored, 60_000);
          const outcome = await transcripts.get('video', LANGUAGES);
          if (form === 'json') expect(outcome).toBeUndefined();
          else expect(outcome?.ok && outcome.transcript.deflated).toBeUndefined();
        }
      }
    },
  );

  it('deflated is not taken for that of another transcript', async () => {
    await transcripts.store('video', LANGUAGES, success);
    await sentAs('deflated', await known());
    const changed = asCachedOutcome({ ok: true, details: NO_DETAILS, transcript: new Map([['en', []]]) });
    await transcripts.store('video', LANGUAGES, changed);
    const text = await sentAs('deflated', await known());
    expect(inflateRawSync(text?.bytes ?? '', { finishFlush: constants.Z_SYNC_FLUSH }).toString()).toBe('{"en":[]}');
  });

  it('outlives its outcome by more than a deadline, so that it is available until the end of a call', async () => {
    await transcripts.store('video', LANGUAGES, success);
    const [outcomeEndsAtMs, textEndsAtMs] = [
      await cache.ttl(transcripts.key('video', LANGUAGES)),
      await cache.ttl(key('json')),
    ];
    expect((textEndsAtMs ?? 0) - (outcomeEndsAtMs ?? 0)).toBeGreaterThan(environment.REQUEST_DEADLINE_SECONDS * 1_000);
  });

  it('is missing after an eviction', async () => {
    await transcripts.store('video', LANGUAGES, success);
    await transcripts.evict('video', LANGUAGES);
    expect(await transcripts.getMany(['video'], LANGUAGES)).toEqual([undefined]);
  });
});
