import type { components } from './schema.js';

/** One line of an NDJSON response: first `channel` or `playlist`, then each `result` as it finishes, last `summary`. */
export type TranscriptsEvent =
  | { type: 'channel'; channel: components['schemas']['Channel'] }
  | { type: 'playlist'; playlist: components['schemas']['Playlist'] }
  | { type: 'result'; result: components['schemas']['VideoTranscript'] }
  | { type: 'summary'; summary: components['schemas']['Summary'] };

const TYPES = ['channel', 'playlist', 'result', 'summary'] as const;

/**
 * Yields the events of an `application/x-ndjson` body as they arrive. Unknown types are skipped, because later versions
 * of the service may add types. Leaving the loop early cancels the request.
 *
 * @throws Error when the body ends before its summary, or a line is not JSON
 */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<TranscriptsEvent, void, undefined> {
  let ended = false;
  for await (const line of linesOf(body)) {
    const event: unknown = JSON.parse(line);
    if (!isEvent(event)) continue;
    ended = event.type === 'summary';
    yield event;
  }
  if (!ended) throw new Error('The response is incomplete: it ended before its summary.');
}

/** Yields the lines of a body as they arrive. */
export async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split('\n');
      rest = done ? '' : (lines.pop() ?? '');
      for (const line of lines) if (line.trim() !== '') yield line;
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function isEvent(value: unknown): value is TranscriptsEvent {
  if (typeof value !== 'object' || value === null || !('type' in value)) return false;
  const { type } = value;
  const known = TYPES.find((name) => name === type);
  return known !== undefined && typeof Object.entries(value).find(([name]) => name === known)?.[1] === 'object';
}
