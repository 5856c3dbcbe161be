import { once } from 'node:events';
import { constants, createGzip, type Gzip } from 'node:zlib';
import type { Response } from 'express';
import type { Entry, TranscriptsEvent } from '../transcripts/events.js';

/** A reader who takes nothing for this long is gone or as good as gone; the connection is closed under it. */
const STALLED_READER_MS = 30_000;

/** The answer as JSON, in pieces that follow one another; the text of a transcript passes through as it is. */
export async function* answerJson(
  events: AsyncIterable<TranscriptsEvent>,
): AsyncGenerator<readonly (string | Buffer)[]> {
  let separator = '';
  for await (const event of events) {
    switch (event.type) {
      case 'channel':
        yield [`{"channel":${JSON.stringify(event.channel)},"results":[`];
        break;
      case 'result':
        yield [separator, ...entryJson(event.entry)];
        separator = ',';
        break;
      case 'summary':
        yield [`],"summary":${JSON.stringify(event.summary)}}`];
        break;
    }
  }
}

function entryJson(entry: Entry): (string | Buffer)[] {
  const head = `{"videoId":${JSON.stringify(entry.videoId)},"ok":${entry.ok},"metadata":${JSON.stringify(entry.metadata)},"transcript":`;
  return entry.ok
    ? [head, entry.transcriptJson, `,"cached":${entry.cached}}`]
    : [`${head}{},"cached":false,"error":${JSON.stringify(entry.error)}}`];
}

/**
 * Writes pieces as they come and no faster than the reader takes them. Resolves when all was handed over or the reader
 * has left; a piece that cannot be made destroys the connection, so that a short body never looks whole.
 *
 * @param stalledReaderMs how long a reader may take nothing before the connection is closed
 */
export async function writeBody(
  response: Response,
  pieces: AsyncIterable<readonly (string | Buffer)[]>,
  encoding: 'gzip' | 'identity',
  stalledReaderMs = STALLED_READER_MS,
): Promise<void> {
  const sink = encoding === 'gzip' ? compressed(response) : response;
  try {
    for await (const piece of pieces) {
      if (response.destroyed) return;
      sink.cork();
      const room = piece.map((part) => sink.write(part)).at(-1) ?? true;
      sink.uncork();
      if ('flush' in sink) sink.flush(constants.Z_SYNC_FLUSH);
      if (!room) await drained(sink, response, stalledReaderMs);
    }
    response.socket?.setTimeout(stalledReaderMs);
    sink.end();
  } catch (error) {
    response.destroy();
    throw error;
  }
}

function compressed(response: Response): Gzip {
  response.setHeader('Content-Encoding', 'gzip');
  // Speed over size: the text is compressed while others wait for the same processor.
  const gzip = createGzip({ level: constants.Z_BEST_SPEED });
  gzip.on('error', () => response.destroy());
  response.once('close', () => gzip.destroy());
  gzip.pipe(response);
  return gzip;
}

/** Waits until the reader has taken what was written, or has left. */
async function drained(sink: Response | Gzip, response: Response, stalledReaderMs: number): Promise<void> {
  const { socket } = response;
  // Node counts the bytes that leave a socket as activity, so that only a reader who takes nothing runs into this.
  socket?.setTimeout(stalledReaderMs);
  const settled = new AbortController();
  await Promise.race([once(sink, 'drain', settled), once(response, 'close', settled)]).finally(() => settled.abort());
  socket?.setTimeout(0);
}
