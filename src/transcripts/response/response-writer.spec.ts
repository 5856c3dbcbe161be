import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, jest } from '@jest/globals';
import type { Response } from 'express';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { anyText } from '../../../test/texts/any-text.js';
import { jsonOfText, storedText } from '../../../test/texts/stored-text.js';
import { Environment } from '../../config/environment.js';
import { VIDEO_FAILURE_CODES, VIDEO_KINDS } from '../../domain/transcript.js';
import type { VideoMetadata } from '../dto/transcripts-response.dto.js';
import { addToSummary, emptySummary, type Entry, type TranscriptsEvent } from '../delivery/transcript-events.js';
import type { TranscriptText } from '../cache/transcript-text.js';
import { HeldTexts, ResponseMemory } from '../delivery/response-memory.js';
import { serializeJson, serializeNdjson } from '../formats/json.js';
import { writeResponse } from './response-writer.js';

const text = anyText({ maxLength: 20 });
const number = fc.nat();
const plain = { noNullPrototype: true };
const anyMetadata: fc.Arbitrary<VideoMetadata> = fc.record(
  {
    title: fc.option(text),
    url: text,
    publishedAt: fc.option(text),
    publishedText: fc.option(text),
    durationSeconds: fc.option(number),
    viewCount: fc.option(number),
    thumbnailUrl: fc.option(text),
    kind: fc.option(fc.constantFrom(...VIDEO_KINDS)),
    captionTracks: fc.option(
      fc.array(fc.record({ languageCode: text, name: text, generated: fc.boolean() }, plain), { maxLength: 2 }),
    ),
  },
  plain,
);
const anyTranscript = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  fc.array(fc.record({ text, start: number, duration: number }, plain), { maxLength: 3 }),
  { maxKeys: 3, ...plain },
);
const anyEntry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record(
    {
      videoId: text,
      ok: fc.constant(true as const),
      metadata: anyMetadata,
      transcript: anyTranscript.map((transcript) => storedText(JSON.stringify(transcript))),
      cached: fc.boolean(),
      tracks: fc.constant({ en: { name: 'English, "cached":', generated: true } }),
    },
    plain,
  ),
  fc.record(
    {
      videoId: text,
      ok: fc.constant(false as const),
      metadata: anyMetadata,
      error: fc.record(
        { code: fc.constantFrom(...VIDEO_FAILURE_CODES), message: text, retryable: fc.boolean() },
        plain,
      ),
    },
    plain,
  ),
);
const anyChannel = fc.record({ id: text, name: text, handle: fc.option(text) }, plain);

async function* asEvents(
  channel: { id: string; name: string; handle: string | null },
  entries: readonly Entry[],
): AsyncGenerator<TranscriptsEvent> {
  const summary = emptySummary();
  yield await Promise.resolve({ type: 'channel', channel });
  for (const entry of entries) {
    addToSummary(summary, entry);
    yield { type: 'result', entry };
  }
  yield { type: 'summary', summary };
}

async function chunksOf(
  events: AsyncIterable<TranscriptsEvent>,
  write = serializeJson,
): Promise<(string | TranscriptText)[]> {
  const chunks: (string | TranscriptText)[] = [];
  for await (const chunk of write(events)) chunks.push(...chunk);
  return chunks;
}

const joined = (chunks: readonly (string | TranscriptText)[]): string =>
  chunks.map((chunk) => (typeof chunk === 'string' ? chunk : jsonOfText(chunk))).join('');

/** The expected JSON of an entry. */
function expectedJson(entry: Entry): unknown {
  const { videoId, ok, metadata } = entry;
  return ok
    ? {
        videoId,
        ok,
        metadata,
        transcript: JSON.parse(jsonOfText(entry.transcript)) as unknown,
        cached: entry.cached,
        tracks: entry.tracks,
      }
    : { videoId, ok, metadata, transcript: {}, cached: false, error: entry.error, tracks: {} };
}

describe('the serialized response', () => {
  it('is a JSON document of the channel, the entries and the summary, in this order', async () => {
    await fc.assert(
      fc.asyncProperty(anyChannel, fc.array(anyEntry, { maxLength: 6 }), async (channel, entries) => {
        const body = joined(await chunksOf(asEvents(channel, entries)));
        const summary = emptySummary();
        entries.forEach((entry) => addToSummary(summary, entry));
        // Compared as text, which includes the order of the keys.
        expect(body).toBe(JSON.stringify({ channel, results: entries.map(expectedJson), summary }));
      }),
    );
  });

  it('is one JSON object per event as NDJSON', async () => {
    await fc.assert(
      fc.asyncProperty(anyChannel, fc.array(anyEntry, { maxLength: 6 }), async (channel, entries) => {
        const body = joined(await chunksOf(asEvents(channel, entries), serializeNdjson));
        const summary = emptySummary();
        entries.forEach((entry) => addToSummary(summary, entry));
        const events = [
          { type: 'channel', channel },
          ...entries.map((entry) => ({ type: 'result', result: expectedJson(entry) })),
          { type: 'summary', summary },
        ];
        expect(body).toBe(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
      }),
    );
  });
});

describe('a written response', () => {
  it.each(['identity', 'gzip'] as const)('takes few writes of the socket for many entries (%s)', async (encoding) => {
    const [metadata] = fc.sample(anyMetadata, 1);
    if (!metadata) throw new Error('There is no sample.');
    const transcript = storedText(JSON.stringify({ en: 'x'.repeat(1_000) }));
    const entry: Entry = { videoId: 'video', ok: true, metadata, transcript, cached: true, tracks: {} };
    const events = asEvents({ id: '', name: '', handle: null }, Array<Entry>(100).fill(entry));
    let writes = 0;
    const server = createServer((_request, response) => {
      const memory = new ResponseMemory(new Environment(), new Registry());
      const waiting = new HeldTexts(memory, 'org');
      void writeResponse(response as Response, serializeJson(events), encoding, waiting);
    });
    server.on('connection', (socket: Socket) => {
      for (const method of ['_write', '_writev'] as const) {
        const write = socket[method]?.bind(socket) as (...given: unknown[]) => void;
        jest.spyOn(socket, method).mockImplementation((...given: unknown[]) => {
          writes++;
          write(...given);
        });
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const body = await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).text();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect(JSON.parse(body)).toMatchObject({ summary: { total: 100 } });
    // An inflated text arrives in a turn of its own.
    expect(writes).toBeLessThanOrEqual(encoding === 'gzip' ? 1 : 101);
  });
});
