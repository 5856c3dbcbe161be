import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readEvents, type TranscriptsEvent } from '../src/events.js';

const EVENTS: TranscriptsEvent[] = [
  { type: 'channel', channel: { id: 'UCtidewater_____________', name: 'Høst & 波', handle: null } },
  {
    type: 'result',
    result: {
      videoId: 'a',
      ok: true,
      metadata: {
        title: 'Bådebyggeri 🚣',
        url: 'https://www.youtube.com/watch?v=a',
        publishedAt: null,
        publishedText: null,
        durationSeconds: 1,
        viewCount: null,
        thumbnailUrl: null,
        kind: 'video',
        captionTracks: [],
      },
      transcript: { da: [{ text: 'Godmorgen 🌅\nigen', start: 0, duration: 1 }] },
      cached: false,
      tracks: {},
    },
  },
  { type: 'summary', summary: { total: 1, succeeded: 1, failed: 0, cached: 0, fetched: 1 } },
];
const LINES = EVENTS.map((event) => `${JSON.stringify(event)}\n`);

/** A body that arrives in chunks, and whether its reader has cancelled it. */
function bodyOf(chunks: readonly Uint8Array[]): { body: ReadableStream<Uint8Array>; isCancelled: () => boolean } {
  const remaining = [...chunks];
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const chunk = remaining.shift();
      if (chunk) controller.enqueue(chunk);
      else controller.close();
    },
    cancel: () => void (cancelled = true),
  });
  return { body, isCancelled: () => cancelled };
}

async function read(text: string, cuts: readonly number[] = []): Promise<TranscriptsEvent[]> {
  const bytes = new TextEncoder().encode(text);
  const ends = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((one, other) => one - other);
  const chunks = [...ends, bytes.length].map((end, index) => bytes.slice(ends[index - 1] ?? 0, end));
  const events: TranscriptsEvent[] = [];
  for await (const event of readEvents(bodyOf(chunks).body)) events.push(event);
  return events;
}

describe('readEvents', () => {
  it('yields the same events however the body is split into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 12 }), async (cuts) => {
        expect(await read(LINES.join(''), cuts)).toEqual(EVENTS);
      }),
    );
  });

  it('accepts a missing last line end, and skips blank lines and unknown events', async () => {
    expect(await read(`\n${LINES.join('\n')}`.trimEnd())).toEqual(EVENTS);
    expect(await read(['{"type":"progress","progress":1}\n', '[]\n', 'null\n', ...LINES].join(''))).toEqual(EVENTS);
  });

  it('throws when the summary is missing', async () => {
    await expect(read(LINES.slice(0, 2).join(''))).rejects.toThrow('ended before its summary');
    await expect(read('')).rejects.toThrow('ended before its summary');
    await expect(read(LINES.join('').slice(0, -8))).rejects.toThrow();
  });

  it('cancels the request when the loop ends early', async () => {
    const { body, isCancelled } = bodyOf(LINES.map((line) => new TextEncoder().encode(line)));
    for await (const event of readEvents(body)) if (event.type === 'channel') break;
    expect(isCancelled()).toBe(true);
  });
});
