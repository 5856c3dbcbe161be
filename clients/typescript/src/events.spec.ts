import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readEvents, type TranscriptsEvent } from './events.js';

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
    },
  },
  { type: 'summary', summary: { total: 1, succeeded: 1, failed: 0, cached: 0, fetched: 1 } },
];
const LINES = EVENTS.map((event) => `${JSON.stringify(event)}\n`);

/** A body that arrives in pieces, and whether its reader has given it up. */
function bodyOf(pieces: readonly Uint8Array[]): { body: ReadableStream<Uint8Array>; givenUp: () => boolean } {
  const left = [...pieces];
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const piece = left.shift();
      if (piece) controller.enqueue(piece);
      else controller.close();
    },
    cancel: () => void (cancelled = true),
  });
  return { body, givenUp: () => cancelled };
}

async function read(text: string, cuts: readonly number[] = []): Promise<TranscriptsEvent[]> {
  const bytes = new TextEncoder().encode(text);
  const ends = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((one, other) => one - other);
  const pieces = [...ends, bytes.length].map((end, index) => bytes.slice(ends[index - 1] ?? 0, end));
  const events: TranscriptsEvent[] = [];
  for await (const event of readEvents(bodyOf(pieces).body)) events.push(event);
  return events;
}

describe('the events of a streamed answer', () => {
  it('are read the same wherever the network cuts the body', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 12 }), async (cuts) => {
        expect(await read(LINES.join(''), cuts)).toEqual(EVENTS);
      }),
    );
  });

  it('are read without a line end at the end, and past blank lines and events that are not known', async () => {
    expect(await read(`\n${LINES.join('\n')}`.trimEnd())).toEqual(EVENTS);
    expect(await read(['{"type":"progress","progress":1}\n', '[]\n', 'null\n', ...LINES].join(''))).toEqual(EVENTS);
  });

  it('are no whole answer without their summary', async () => {
    await expect(read(LINES.slice(0, 2).join(''))).rejects.toThrow('ended before its summary');
    await expect(read('')).rejects.toThrow('ended before its summary');
    await expect(read(LINES.join('').slice(0, -8))).rejects.toThrow();
  });

  it('end the request when their reader leaves the loop', async () => {
    const { body, givenUp } = bodyOf(LINES.map((line) => new TextEncoder().encode(line)));
    for await (const event of readEvents(body)) if (event.type === 'channel') break;
    expect(givenUp()).toBe(true);
  });
});
