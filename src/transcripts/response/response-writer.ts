import type { Response } from 'express';
import { onResponseEnd, responseEnd } from '../../http/response-end.js';
import type { SentText } from '../cache/transcript-text.js';
import type { Chunk } from './serialization.js';
import { GzipMember } from './gzip-member.js';

/** Pieces that are there at the same time go out in one write of about this size. */
const WRITE_BYTES = 512 * 1024;

/**
 * Writes pieces as they come and no faster than the reader takes them. Resolves when all was handed over or the reader
 * has left; a piece that cannot be made destroys the connection, so that a short body never looks whole.
 *
 * @param encoding `gzip` when the texts of the pieces are deflated
 */
export async function writeResponse(
  response: Response,
  chunks: AsyncIterable<Chunk>,
  encoding: 'gzip' | 'identity',
): Promise<void> {
  if (encoding === 'gzip') response.setHeader('Content-Encoding', 'gzip');
  const writer = new PacedWriter(response, encoding === 'gzip' ? new GzipMember() : undefined);
  try {
    for await (const chunk of chunks) {
      if (writer.isFull) await writer.room();
      if (responseEnd(response).aborted) return;
      for (const part of chunk) writer.write(part);
    }
    writer.end();
  } catch (error) {
    response.destroy();
    throw error;
  }
}

/** Gathers what is written in one turn of the event loop into one write, and waits for the reader to take it. */
class PacedWriter {
  /** JSON that follows what was handed over: one part for as much of it as comes together. */
  private json = '';
  private gatheredBytes = 0;
  /** Handed to the response and not yet taken by the connection. */
  private waitingBytes = 0;
  private scheduled: NodeJS.Immediate | undefined;
  private proceed: (() => void) | undefined;

  constructor(
    private readonly response: Response,
    private readonly gzip: GzipMember | undefined,
  ) {
    onResponseEnd(response, () => this.proceed?.());
    if (gzip) this.hand(gzip.begin());
  }

  get isFull(): boolean {
    const gathered = this.gatheredBytes + this.json.length;
    return gathered >= WRITE_BYTES || (this.scheduled === undefined && this.isBehind);
  }

  write(part: string | SentText): void {
    if (typeof part === 'string') {
      this.json += part;
      this.schedule();
      return;
    }
    this.handJson();
    this.hand(this.gzip ? this.gzip.text(part) : part.bytes);
  }

  /** Waits until the reader has taken what was written, or the response has ended. */
  async room(): Promise<void> {
    this.flush();
    while (this.isBehind && !responseEnd(this.response).aborted) {
      await new Promise<void>((resolve) => (this.proceed = resolve));
    }
  }

  end(): void {
    this.handJson();
    if (this.gzip) this.hand(this.gzip.end());
    this.flush();
    this.response.end();
  }

  private get isBehind(): boolean {
    return this.waitingBytes >= this.response.writableHighWaterMark;
  }

  private handJson(): void {
    if (this.json === '') return;
    this.hand(this.gzip ? this.gzip.literal(this.json) : Buffer.from(this.json));
    this.json = '';
  }

  /**
   * The callback of each write is what there is to wait for: `writableNeedDrain` stays true for ever on Node 22, and 24
   * before 24.19, when all bytes of a corked response go out at once (nodejs/node 60432), and it says nothing of a
   * response that is queued behind another.
   */
  private hand(bytes: Buffer): void {
    this.schedule();
    this.gatheredBytes += bytes.length;
    this.waitingBytes += bytes.length;
    this.response.write(bytes, (error) => {
      // The connection was cut: the end of the response follows, and until then there is no room.
      if (error) return;
      this.waitingBytes -= bytes.length;
      if (!this.isBehind) this.proceed?.();
    });
  }

  private schedule(): void {
    if (this.scheduled !== undefined) return;
    this.response.cork();
    this.scheduled = setImmediate(() => this.flush());
  }

  private flush(): void {
    if (this.scheduled === undefined) return;
    this.handJson();
    clearImmediate(this.scheduled);
    this.scheduled = undefined;
    this.gatheredBytes = 0;
    this.response.uncork();
  }
}
