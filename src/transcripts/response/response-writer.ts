import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { invalidField } from '../../domain/errors.js';
import { requestContext } from '../../http/server/request-context.js';
import { GzipMember } from '../cache/gzip-member.js';
import { deflate, inflate, type TranscriptText } from '../cache/transcript-text.js';
import type { Chunk } from '../formats/json.js';
import { HeldTexts, ResponseMemory } from '../delivery/response-memory.js';

export const NDJSON = 'application/x-ndjson';
export const MARKDOWN = 'text/markdown';

/** Approximate size of one write, and of what is written before the reader has taken it. */
const WRITE_BYTES = 512 * 1024;
/** Below this a deflated block saves less than it costs. */
const COMPRESSED_CHARACTERS_MIN = 256;

type Chunks = AsyncIterable<Chunk | string> | Iterable<Chunk | string>;

/** Sends the bodies of responses with transcripts: those of calls, and stored results. */
@Injectable()
export class ResponseWriter {
  constructor(private readonly memory: ResponseMemory) {}

  /**
   * Sends chunks of a content type that the request accepts, compressed when it accepts that, as `writeResponse` does.
   *
   * @param request of an authenticated call
   */
  send(request: Request, response: Response, type: string, chunks: Chunks): Promise<void> {
    response.setHeader('Content-Type', withCharset(type));
    response.vary('Accept-Encoding').vary('Accept');
    const isCompressed = request.acceptsEncodings('gzip', 'identity') === 'gzip';
    const waiting = new HeldTexts(this.memory, requestContext(request).caller.organization.id);
    return writeResponse(response, chunks, isCompressed ? 'gzip' : 'identity', waiting);
  }
}

/** The one of the content types that the caller prefers: JSON unless it names another one, with or without the charset. */
export function acceptedType<T extends string>(request: Request, types: readonly T[]): T | 'application/json' {
  const preferred = request.accepts(types.map(withCharset));
  return types.find((type) => withCharset(type) === preferred) ?? 'application/json';
}

/** @throws InvalidRequestError when the request names other content types than that of documents */
export function requireDocumentsAccepted(request: Request): void {
  if (request.accepts(withCharset(NDJSON)) === false)
    throw invalidField('as', `as=documents requires the header Accept: ${NDJSON}.`);
}

const withCharset = (type: string) => `${type}; charset=utf-8`;

/**
 * Writes chunks as they are produced, no faster than the reader takes them. Resolves when everything is written or the
 * reader has disconnected. An error of the producer destroys the connection, so that a truncated body never looks
 * complete.
 * Each text is inflated on its turn, or copied into a gzip body. What is no part of JSON is compressed here.
 *
 * @param waiting counts what was written and not yet taken
 */
export async function writeResponse(
  response: Response,
  chunks: Chunks,
  encoding: 'gzip' | 'identity',
  waiting: HeldTexts,
): Promise<void> {
  if (response.closed) waiting.close();
  else response.once('close', () => waiting.close());
  const gzip = encoding === 'gzip' ? new GzipMember() : undefined;
  if (gzip) response.setHeader('Content-Encoding', 'gzip');
  const writer = new PacedWriter(response, waiting, (text) => gzip?.literal(text) ?? Buffer.from(text));
  try {
    if (gzip) writer.write(gzip.begin());
    for await (const chunk of chunks) {
      for (const part of typeof chunk === 'string' ? [await plainPart(chunk, gzip)] : chunk) {
        if (writer.isFull) await writer.room();
        if (response.closed) return;
        if (typeof part === 'string') writer.writeLiteral(part);
        else {
          writer.endLiteral();
          if (gzip) writer.write(gzip.text(part));
          else writer.write(await inflate(part));
        }
      }
    }
    writer.endLiteral();
    if (gzip) writer.write(gzip.end());
    writer.end();
  } catch (error) {
    response.destroy();
    throw error;
  }
}

/** A text outside of JSON, of which nothing was compressed before. */
function plainPart(text: string, gzip: GzipMember | undefined): Promise<TranscriptText> | string {
  return gzip && text.length >= COMPRESSED_CHARACTERS_MIN ? deflate(Buffer.from(text)) : text;
}

/**
 * Joins what is written in one turn of the event loop into one system call, and waits until the reader has taken it.
 * Literals that follow each other become one buffer.
 */
class PacedWriter {
  private batch: Buffer[] = [];
  private batchBytes = 0;
  private literal = '';
  /** Written to the response and not yet taken by the connection. */
  private waitingBytes = 0;
  private scheduled: NodeJS.Immediate | undefined;
  private resume: (() => void) | undefined;

  constructor(
    private readonly response: Response,
    private readonly waiting: HeldTexts,
    private readonly encodeLiteral: (text: string) => Buffer,
  ) {
    response.once('close', () => this.resume?.());
  }

  get isFull(): boolean {
    return this.waitingBytes + this.batchBytes >= WRITE_BYTES;
  }

  writeLiteral(text: string): void {
    this.literal += text;
    this.scheduled ??= setImmediate(() => this.flush());
  }

  /** Writes the literals so far. Has to be called before other bytes are encoded and written. */
  endLiteral(): void {
    if (this.literal === '') return;
    this.write(this.encodeLiteral(this.literal));
    this.literal = '';
  }

  write(bytes: Buffer): void {
    this.batch.push(bytes);
    this.waiting.add(bytes);
    this.batchBytes += bytes.length;
    this.scheduled ??= setImmediate(() => this.flush());
  }

  /** Waits until the reader has taken what was written, or the response has ended. */
  async room(): Promise<void> {
    this.flush();
    while (this.isBehind && !this.response.closed) {
      await new Promise<void>((resolve) => (this.resume = resolve));
    }
  }

  end(): void {
    const { socket } = this.response;
    socket?.cork();
    this.flush();
    this.response.end();
    socket?.uncork();
  }

  private get isBehind(): boolean {
    return this.waitingBytes >= this.response.writableHighWaterMark;
  }

  /**
   * Waits for the callback of the last write instead of 'drain', which is not emitted for a response that is queued behind
   * another. A corked response sends its batch as one chunk of the transfer encoding. The socket is corked as well: Node.js
   * 22 and 24 uncork it before they pass on the parts of that chunk, each of which would be a system call of its own.
   */
  private flush(): void {
    this.endLiteral();
    clearImmediate(this.scheduled);
    this.scheduled = undefined;
    const { batch, batchBytes, response } = this;
    const last = batch.at(-1);
    if (!last) return;
    this.batch = [];
    this.batchBytes = 0;
    this.waitingBytes += batchBytes;
    const { socket } = response;
    socket?.cork();
    response.cork();
    for (const bytes of batch.slice(0, -1)) response.write(bytes);
    response.write(last, (error) => {
      // The connection is closed: the end of the response follows and wakes the writer.
      if (error) return;
      this.waitingBytes -= batchBytes;
      for (const bytes of batch) this.waiting.release(bytes);
      if (!this.isBehind) this.resume?.();
    });
    response.uncork();
    socket?.uncork();
  }
}
