import type { Response } from 'express';
import type { SentText } from '../transcripts/transcript-text.js';
import type { Piece } from './answer-text.js';
import { GzipMember } from './gzip-member.js';

/** A reader who takes nothing for this long is gone or as good as gone; the connection is closed under it. */
const STALLED_READER_MS = 30_000;
/** Pieces that are there at the same time go out in one write of about this size. */
const WRITE_BYTES = 512 * 1024;

/**
 * Writes pieces as they come and no faster than the reader takes them. Resolves when all was handed over or the reader
 * has left; a piece that cannot be made destroys the connection, so that a short body never looks whole.
 *
 * @param encoding `gzip` when the texts of the pieces are deflated
 * @param stalledReaderMs how long a reader may take nothing before the connection is closed
 */
export async function writeBody(
  response: Response,
  pieces: AsyncIterable<Piece>,
  encoding: 'gzip' | 'identity',
  stalledReaderMs = STALLED_READER_MS,
): Promise<void> {
  if (encoding === 'gzip') response.setHeader('Content-Encoding', 'gzip');
  const writer = new PacedWriter(response, encoding === 'gzip' ? new GzipMember() : undefined, stalledReaderMs);
  try {
    for await (const piece of pieces) {
      if (writer.isFull) await writer.room();
      if (response.destroyed) return;
      for (const part of piece) writer.write(part);
    }
    writer.end();
  } catch (error) {
    response.destroy();
    throw error;
  }
}

/** In how many steps a reader's silence is counted: so much later than it was due its connection is closed at the most. */
const SILENCE_STEPS = 10;

/**
 * Tells a reader who takes nothing from one who is slow. Node's own timer of a socket comes only when nothing has left it
 * since the timer was set, but begins anew once for what left at its beginning, so a single one would take up to twice
 * its time: it is set to a fraction and counted.
 */
class Silence {
  private lastStepMs = 0;
  private steps = 0;

  constructor(
    private readonly response: Response,
    private readonly silenceMaxMs: number,
  ) {
    // With a listener Node leaves the closing to it.
    response.on('timeout', () => this.step());
  }

  watch(): void {
    this.steps = 0;
    this.response.socket?.setTimeout(this.stepMs);
  }

  forget(): void {
    this.response.socket?.setTimeout(0);
  }

  private get stepMs(): number {
    return Math.ceil(this.silenceMaxMs / SILENCE_STEPS);
  }

  private step(): void {
    const nowMs = performance.now();
    // A step that took longer was begun anew in between, because something had left.
    this.steps = nowMs - this.lastStepMs < 1.5 * this.stepMs ? this.steps + 1 : 1;
    this.lastStepMs = nowMs;
    if (this.steps >= SILENCE_STEPS) this.response.destroy();
    else this.response.socket?.setTimeout(this.stepMs);
  }
}

/** Gathers what is written in one turn of the event loop into one write, and tells when the reader is to be waited for. */
class PacedWriter {
  /** JSON that follows what was handed over: one part for as much of it as comes together. */
  private json = '';
  private gatheredBytes = 0;
  private scheduled: NodeJS.Immediate | undefined;
  private proceed: (() => void) | undefined;
  private readonly silence: Silence;

  constructor(
    private readonly response: Response,
    private readonly gzip: GzipMember | undefined,
    stalledReaderMs: number,
  ) {
    this.silence = new Silence(response, stalledReaderMs);
    const proceed = (): void => this.proceed?.();
    response.on('drain', proceed);
    response.once('close', proceed);
    if (gzip) this.hand(gzip.begin());
  }

  get isFull(): boolean {
    const gathered = this.gatheredBytes + this.json.length;
    return gathered >= WRITE_BYTES || (this.scheduled === undefined && this.response.writableNeedDrain);
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

  /** Waits until the reader has taken what was written, or has left. */
  async room(): Promise<void> {
    this.flush();
    const { response } = this;
    while (response.writableNeedDrain && !response.destroyed) {
      this.silence.watch();
      await new Promise<void>((resolve) => (this.proceed = resolve));
      this.silence.forget();
    }
  }

  end(): void {
    this.silence.watch();
    this.handJson();
    if (this.gzip) this.hand(this.gzip.end());
    this.flush();
    this.response.end();
  }

  private handJson(): void {
    if (this.json === '') return;
    this.hand(this.gzip ? this.gzip.literal(this.json) : Buffer.from(this.json));
    this.json = '';
  }

  private hand(bytes: Buffer): void {
    this.schedule();
    this.gatheredBytes += bytes.length;
    this.response.write(bytes);
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
