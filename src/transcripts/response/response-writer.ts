import type { Response } from 'express';
import { inflate, type TranscriptText } from '../cache/transcript-text.js';
import { GzipMember } from './gzip-member.js';
import type { BodyRecording } from './repeated-bodies.js';
import type { Entry, TranscriptsEvent } from '../transcript-events.js';

/** Approximate size of one write, and of what is written before the reader has taken it. */
const WRITE_BYTES = 512 * 1024;
/** The same for a whole body: a few large writes cost half as much per byte as many of one megabyte. */
const SLICE_BYTES = 4 * 1024 * 1024;

/**
 * Writes chunks as they are produced, no faster than the reader takes them. Resolves when everything is written or the
 * reader has disconnected. An error of the producer destroys the connection, so that a truncated body never looks
 * complete.
 * Each text is inflated on its turn, or copied into a gzip body.
 */
export async function writeResponse(
  response: Response,
  chunks: AsyncIterable<Chunk>,
  encoding: 'gzip' | 'identity',
  recording?: BodyRecording,
): Promise<void> {
  if (encoding === 'gzip') response.setHeader('Content-Encoding', 'gzip');
  const writer = new PacedWriter(response, encoding === 'gzip' ? new GzipMember() : undefined, recording);
  let isComplete = false;
  try {
    for await (const chunk of chunks) {
      if (writer.isFull) await writer.room();
      if (response.closed) return;
      for (const part of chunk) await writer.write(part);
    }
    writer.end();
    isComplete = true;
  } catch (error) {
    response.destroy();
    throw error;
  } finally {
    recording?.end(isComplete);
  }
}

/**
 * Writes a body that is complete in memory, no faster than the reader takes it.
 *
 * @param encoding the encoding of the body
 */
export async function writeBody(response: Response, body: Buffer, encoding: 'gzip' | 'identity'): Promise<void> {
  if (encoding === 'gzip') response.setHeader('Content-Encoding', 'gzip');
  const writer = new PacedWriter(response);
  for (let at = 0; at < body.length; at += SLICE_BYTES) {
    if (writer.isFull) await writer.room();
    if (response.closed) return;
    writer.send(body.subarray(at, at + SLICE_BYTES));
  }
  writer.end();
}

/** Joins what is written in one turn of the event loop into one write, and waits until the reader has taken it. */
class PacedWriter {
  /** JSON that follows the bytes already sent; consecutive parts are joined. */
  private json = '';
  /** Written to the response and not yet taken by the connection. */
  private waitingBytes = 0;
  private scheduled: NodeJS.Immediate | undefined;
  private resume: (() => void) | undefined;

  constructor(
    private readonly response: Response,
    private readonly gzip?: GzipMember,
    private readonly recording?: BodyRecording,
  ) {
    response.once('close', () => this.resume?.());
    if (gzip) this.send(gzip.begin());
  }

  get isFull(): boolean {
    return this.waitingBytes + this.json.length >= WRITE_BYTES;
  }

  async write(part: string | TranscriptText): Promise<void> {
    if (typeof part === 'string') {
      this.json += part;
      this.schedule();
      return;
    }
    if (!this.gzip) {
      const text = await inflate(part);
      this.sendJson();
      this.send(text);
      return;
    }
    this.sendJson();
    this.send(this.gzip.text(part));
  }

  /** Waits until the reader has taken what was written, or the response has ended. */
  async room(): Promise<void> {
    this.flush();
    while (this.isBehind && !this.response.closed) {
      await new Promise<void>((resolve) => (this.resume = resolve));
    }
  }

  end(): void {
    this.sendJson();
    if (this.gzip) this.send(this.gzip.end());
    const { socket } = this.response;
    socket?.cork();
    this.flush();
    this.response.end();
    socket?.uncork();
  }

  private get isBehind(): boolean {
    return this.waitingBytes >= this.response.writableHighWaterMark;
  }

  private sendJson(): void {
    if (this.json === '') return;
    this.send(this.gzip ? this.gzip.literal(this.json) : Buffer.from(this.json));
    this.json = '';
  }

  /**
   * Waits for the callback of each write instead of 'drain': `writableNeedDrain` stays true for ever on Node 22, and 24
   * before 24.19, when all bytes of a corked response are flushed at once (nodejs/node 60432), and it is not set for a
   * response that is queued behind another.
   */
  send(bytes: Buffer): void {
    this.schedule();
    this.recording?.add(bytes);
    this.waitingBytes += bytes.length;
    this.response.write(bytes, (error) => {
      // The connection is closed: the end of the response follows and wakes the writer.
      if (error) return;
      this.waitingBytes -= bytes.length;
      if (!this.isBehind) this.resume?.();
    });
  }

  private schedule(): void {
    if (this.scheduled !== undefined) return;
    this.response.cork();
    this.scheduled = setImmediate(() => this.flush());
  }

  /**
   * Corks the socket as well, so that everything is one system call: Node 22 and 24 uncork the socket before they pass on
   * the chunks of the response, each of which would be a system call of its own.
   */
  private flush(): void {
    if (this.scheduled === undefined) return;
    this.sendJson();
    clearImmediate(this.scheduled);
    this.scheduled = undefined;
    const { socket } = this.response;
    socket?.cork();
    this.response.uncork();
    socket?.uncork();
  }
}

/** One step of a response: JSON and the texts within it. */
export type Chunk = readonly (string | TranscriptText)[];

/** The response as one JSON document, in chunks; the texts of transcripts pass through unchanged. */
export async function* serializeJson(events: AsyncIterable<TranscriptsEvent>): AsyncGenerator<Chunk> {
  let separator = '';
  for await (const event of events) {
    switch (event.type) {
      case 'channel':
        yield [`{"channel":${JSON.stringify(event.channel)},"results":[`];
        break;
      case 'playlist':
        yield [`{"playlist":${JSON.stringify(event.playlist)},"results":[`];
        break;
      case 'videos':
        yield ['{"results":['];
        break;
      case 'result':
        yield entryJson(separator, event.entry, '');
        separator = ',';
        break;
      case 'summary':
        yield [`],"summary":${JSON.stringify(event.summary)}}`];
        break;
    }
  }
}

/** The response as NDJSON, one line per event, for clients that show progress. */
export async function* serializeNdjson(events: AsyncIterable<TranscriptsEvent>): AsyncGenerator<Chunk> {
  for await (const event of events) {
    switch (event.type) {
      case 'channel':
        yield [`{"type":"channel","channel":${JSON.stringify(event.channel)}}\n`];
        break;
      case 'playlist':
        yield [`{"type":"playlist","playlist":${JSON.stringify(event.playlist)}}\n`];
        break;
      case 'videos':
        break;
      case 'result':
        yield entryJson('{"type":"result","result":', event.entry, '}\n');
        break;
      case 'summary':
        yield [`{"type":"summary","summary":${JSON.stringify(event.summary)}}\n`];
        break;
    }
  }
}

/**
 * The JSON of one entry by itself. Its end is written when the events have ended, which is after the settlement. A reader
 * that stops earlier closes the events, which release the text.
 *
 * @param rest the events after the entry
 */
export async function* serializeEntry(
  entry: Entry,
  rest: AsyncGenerator<TranscriptsEvent, void>,
): AsyncGenerator<Chunk> {
  try {
    yield entryJson('', entry, '');
    for await (const event of rest) if (event.type === 'summary') yield [];
  } finally {
    // A generator that was never resumed after the entry is not closed by the loop.
    await rest.return();
  }
}

/** The JSON of one entry, between two texts. */
export function entryJson(before: string, entry: Entry, after: string): Chunk {
  const head = `${before}{"videoId":${JSON.stringify(entry.videoId)},"ok":${entry.ok},"metadata":${JSON.stringify(entry.metadata)},"transcript":`;
  return entry.ok
    ? [head, entry.transcript, `,"cached":${entry.cached}}${after}`]
    : [`${head}{},"cached":false,"error":${JSON.stringify(entry.error)}}${after}`];
}
