import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { crc32, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Response } from 'express';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { anyText } from '../../../test/any-text.js';
import { Environment } from '../../config/environment.js';
import { VIDEO_FAILURE_CODES, VIDEO_KINDS, type Upload, type VideoDetails } from '../../domain/transcript.js';
import type { CachedOutcome } from '../cache/transcript-cache.js';
import { deflate } from '../cache/transcript-text.js';
import {
  count,
  countOutcome,
  emptySummary,
  failedEntry,
  succeededEntry,
  type Entry,
  type TranscriptsEvent,
} from '../transcript-events.js';
import type { ListHeader } from '../sources/video-list.js';
import { AssembledBodies } from './assembled-bodies.js';
import { ResponseMemory } from './response-memory.js';
import { serializeJson, serializeNdjson, writeAssembled, writeResponse } from './response-writer.js';

const HEADER = { type: 'channel' as const, channel: { id: 'UC', name: 'n', handle: null } };
const ENCODINGS = ['identity', 'gzip'] as const;
type Encoding = (typeof ENCODINGS)[number];

interface Video {
  upload: Upload;
  outcome: CachedOutcome & { details: VideoDetails };
  /** The texts that are sent; of a failure, none. */
  text?: Record<Encoding, Buffer>;
}

interface Plan {
  header: ListHeader;
  order: Video[];
  languages: string[];
}

const plain = { noNullPrototype: true };
const text = anyText({ maxLength: 6 });
const anyUpload: fc.Arbitrary<Upload> = fc.record(
  {
    videoId: text,
    title: fc.option(text),
    url: text,
    publishedAt: fc.option(text),
    publishedText: fc.option(text),
    durationSeconds: fc.option(fc.nat()),
    viewCount: fc.option(fc.nat()),
    thumbnailUrl: fc.option(text),
    kind: fc.option(fc.constantFrom(...VIDEO_KINDS)),
    failure: fc.constant(null),
  },
  plain,
);
const anyDetails: fc.Arbitrary<VideoDetails> = fc.record(
  {
    title: fc.option(text),
    thumbnailUrl: fc.option(text),
    publishedAt: fc.option(text),
    durationSeconds: fc.option(fc.nat()),
    viewCount: fc.option(fc.nat()),
    kind: fc.option(fc.constantFrom(...VIDEO_KINDS)),
    captionTracks: fc.constant(null),
  },
  plain,
);
const anyFailure = fc.record({ code: fc.constantFrom(...VIDEO_FAILURE_CODES) }, { requiredKeys: ['code'], ...plain });
/** Long texts make bodies of several slices. */
const anyJson = fc
  .tuple(text, fc.constantFrom(1, 1, 1, 60_000))
  .map(([words, times]) => Buffer.from(JSON.stringify({ en: words.repeat(times) })));

const anyVideos = fc.array(fc.tuple(anyUpload, anyDetails, fc.option(anyFailure), anyJson), {
  minLength: 1,
  maxLength: 8,
});

async function planOf(
  drawn: readonly [Upload, VideoDetails, { code: (typeof VIDEO_FAILURE_CODES)[number] } | null, Buffer][],
): Promise<Plan> {
  const videos = await Promise.all(
    drawn.map(async ([upload, details, failure, json]): Promise<Video> => {
      if (failure) return { upload, outcome: { ok: false, details, failure } };
      const transcript = { jsonBytes: json.length, crc32: crc32(json) };
      return {
        ...{ upload, outcome: { ok: true, details, transcript } },
        text: { identity: json, gzip: await deflate(json) },
      };
    }),
  );
  return { header: HEADER, order: videos, languages: [] };
}

function entriesOf({ order }: Plan, encoding: Encoding): Entry[] {
  return order.map(({ upload, outcome, text }) => {
    if (!outcome.ok) return failedEntry(upload, outcome.details, outcome.failure);
    if (!text) throw new Error('A transcript has a text.');
    const { jsonBytes, crc32 } = outcome.transcript;
    return succeededEntry(upload, outcome.details, { bytes: text[encoding], jsonBytes, crc32 }, true);
  });
}

async function* eventsOf(entries: readonly Entry[]): AsyncGenerator<TranscriptsEvent> {
  const summary = emptySummary();
  yield await Promise.resolve(HEADER);
  for (const entry of entries) {
    count(summary, entry);
    yield { type: 'result', entry };
  }
  yield { type: 'summary', summary };
}

let server: Server;
let respond: (response: Response) => Promise<void>;

beforeAll(async () => {
  server = createServer((_request, response) => void respond(response as Response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** The body that a client receives, still compressed. */
function received(write: (response: Response) => Promise<void>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    respond = (response) => write(response).catch(reject);
    const request = httpRequest({ port: (server.address() as AddressInfo).port, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('error', reject)
        .on('end', () => resolve(Buffer.concat(chunks)));
    });
    request.on('error', reject).end();
  });
}

function newBodies(megabytes = 256): { bodies: AssembledBodies; memory: ResponseMemory } {
  const environment = new Environment();
  environment.RESPONSE_BUFFER_MAX_MEGABYTES = megabytes;
  const memory = new ResponseMemory(environment);
  return { bodies: new AssembledBodies(memory, new Registry()), memory };
}

/** Writes a response by way of its events, recording it if it is to be recorded. */
function streamed(
  bodies: AssembledBodies,
  plan: Plan,
  encoding: Encoding,
  { serialize = serializeJson, entries = entriesOf(plan, encoding) } = {},
): Promise<Buffer> {
  return received(async (response) => {
    const recording = bodies.record(plan, encoding);
    const events = eventsOf(entries);
    await writeResponse(response, serialize(recording?.watch(events) ?? events), encoding, recording);
    recording?.cancel();
  });
}

async function recorded(bodies: AssembledBodies, plan: Plan, encoding: Encoding): Promise<void> {
  await streamed(bodies, plan, encoding);
  await streamed(bodies, plan, encoding);
}

/** A plan of transcripts that differ from one another. */
function sampleOf(videos: number): Promise<Plan> {
  const [drawn] = fc.sample(fc.tuple(anyUpload, anyDetails), 1);
  if (!drawn) throw new Error('There is no sample.');
  const [upload, details] = drawn;
  return planOf(
    Array.from({ length: videos }, (_, index) => {
      const json = Buffer.from(JSON.stringify({ en: `text ${index}` }));
      return [{ ...upload, videoId: `v${index}` }, { ...details }, null, json];
    }),
  );
}

describe('an assembled body', () => {
  it('equals the streamed one to the byte, and counts the same entries', async () => {
    const anyFormat = fc.constantFrom(serializeJson, serializeNdjson);
    await fc.assert(
      fc.asyncProperty(anyVideos, fc.constantFrom(...ENCODINGS), anyFormat, async (drawn, encoding, serialize) => {
        const { bodies, memory } = newBodies();
        const plan = await planOf(drawn);
        const first = await streamed(bodies, plan, encoding, { serialize });
        expect(bodies.find(plan, encoding)).toBeUndefined();
        expect((await streamed(bodies, plan, encoding, { serialize })).equals(first)).toBe(true);
        const slices = bodies.find(plan, encoding) ?? [];
        const assembled = await received((response) => writeAssembled(response, [...slices], encoding));
        expect(assembled.equals(first)).toBe(true);
        const summary = emptySummary();
        for (const { outcomes } of slices)
          for (const [outcome, entries] of outcomes) countOutcome(summary, outcome, entries);
        const expected = emptySummary();
        for (const entry of entriesOf(plan, encoding)) count(expected, entry);
        expect(summary).toEqual(expected);
        const body = (encoding === 'gzip' ? gunzipSync(assembled) : assembled).toString();
        expect(body.endsWith(`"summary":${JSON.stringify(expected)}}${serialize === serializeJson ? '' : '\n'}`)).toBe(
          true,
        );
        expect(memory.heldBytes).toBe(0);
      }),
      { numRuns: 40 },
    );
  });

  const changes: [string, (plan: Plan, video: Video) => void][] = [
    ['an upload was listed again', (_plan, video) => (video.upload = { ...video.upload })],
    ['an outcome was cached again', (_plan, { outcome }) => (outcome.details = { ...outcome.details })],
    [
      'a text is another',
      (_plan, { outcome }) => void (outcome.ok && (outcome.transcript = { ...outcome.transcript, crc32: 1 })),
    ],
    [
      'a transcript became a failure',
      (_plan, video) =>
        (video.outcome = { ok: false, details: video.outcome.details, failure: { code: 'video_private' } }),
    ],
    ['the order changed', ({ order }) => void order.reverse()],
    ['there is an upload less', ({ order }) => void order.pop()],
    ['the languages differ', ({ languages }) => void languages.push('en')],
    ['the channel was renamed', (plan) => (plan.header = { ...HEADER, channel: { ...HEADER.channel, name: 'other' } })],
  ];
  it.each(changes)('is not used when %s', async (_name, change) => {
    const { bodies } = newBodies();
    const plan = await sampleOf(3);
    await recorded(bodies, plan, 'identity');
    expect(bodies.find(plan, 'identity')).toBeDefined();
    expect(bodies.find(plan, 'gzip')).toBeUndefined();
    const changed = { ...plan, order: plan.order.map((video) => ({ ...video })), languages: [...plan.languages] };
    const [, video] = changed.order;
    if (!video) throw new Error('There is no video.');
    video.outcome = { ...video.outcome };
    change(changed, video);
    expect(bodies.find(changed, 'identity')).toBeUndefined();
  });

  it('is not recorded when a video is not cached', async () => {
    const { bodies } = newBodies();
    const plan = await sampleOf(2);
    const missing = { ...plan, order: plan.order.map(({ upload }) => ({ upload, outcome: undefined })) };
    bodies.record(missing, 'identity');
    expect(bodies.record(missing, 'identity')).toBeUndefined();
  });

  it('is not recorded for videos that the caller names, whose next call has other uploads', async () => {
    const { bodies } = newBodies();
    const plan = { ...(await sampleOf(2)), header: { type: 'videos' as const } };
    bodies.record(plan, 'identity');
    expect(bodies.record(plan, 'identity')).toBeUndefined();
    const listed = { ...plan, header: HEADER };
    bodies.record(listed, 'identity');
    expect(bodies.record(listed, 'identity')).toBeDefined();
  });

  it('is not recorded from a response whose entries differ from the plan', async () => {
    const plan = await sampleOf(2);
    const [one, two] = entriesOf(plan, 'identity');
    if (!one?.ok || !two) throw new Error('There are no entries.');
    const others: Entry[][] = [
      [{ ...one, cached: false }, two],
      [two, one],
      [one],
      [{ ...one, metadata: { ...one.metadata } }, two],
      [{ ...one, transcript: { ...one.transcript, crc32: 1 } }, two],
    ];
    for (const entries of others) {
      const { bodies } = newBodies();
      await streamed(bodies, plan, 'identity');
      await streamed(bodies, plan, 'identity', { entries });
      expect(bodies.find(plan, 'identity')).toBeUndefined();
      // The recording has ended: another one can start.
      await streamed(bodies, plan, 'identity');
      expect(bodies.find(plan, 'identity')).toBeDefined();
    }
  });

  it('is discarded, and none is recorded, while the response memory is no longer half empty', async () => {
    const { bodies, memory } = newBodies(1);
    const plan = await sampleOf(1);
    await recorded(bodies, plan, 'identity');
    expect(bodies.find(plan, 'identity')).toBeDefined();
    const waiting = Buffer.alloc(memory.bytesMax / 2);
    memory.add(waiting);
    expect(bodies.find(plan, 'identity')).toBeUndefined();
    await recorded(bodies, plan, 'identity');
    expect(bodies.find(plan, 'identity')).toBeUndefined();
    memory.release(waiting);
    await recorded(bodies, plan, 'identity');
    expect(bodies.find(plan, 'identity')).toBeDefined();
  });
});
