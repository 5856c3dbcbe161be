import { Injectable } from '@nestjs/common';
import { Environment } from '../../config/environment.js';
import { ServiceUnavailableError } from '../../domain/errors.js';

/** One call may buffer this share of the memory, so that the calls of one key (10 by default) cannot use all of it. */
const CALLS_SHARE = 16;
/** A call that buffers less than this continues when the memory is full: ordinary texts still reach prompt readers. */
const SMALL_BYTES = 512 * 1024;
const RETRY_AFTER_SECONDS = 5;

/** Counts the texts that this process buffers for its readers. A Buffer that several calls share counts once. */
@Injectable()
export class ResponseMemory {
  readonly bytesMax: number;
  /** Called when the memory is no longer half empty. What is held for speed alone is released then. */
  onHalfFull: () => void = () => undefined;
  private readonly references = new Map<Buffer, number>();
  private bytes = 0;

  constructor(environment: Environment) {
    this.bytesMax = environment.RESPONSE_BUFFER_MAX_MEGABYTES * 1024 * 1024;
  }

  get heldBytes(): number {
    return this.bytes;
  }

  get callBytesMax(): number {
    return this.bytesMax / CALLS_SHARE;
  }

  get isFull(): boolean {
    return this.bytes >= this.bytesMax;
  }

  /** True while memory may be traded for speed. */
  get isHalfEmpty(): boolean {
    return this.bytes < this.bytesMax / 2;
  }

  /** @throws ServiceUnavailableError when the memory is full */
  refuseWhenFull(): void {
    if (!this.isFull) return;
    throw new ServiceUnavailableError(
      'The service is at capacity: too many responses wait for slow readers. Nothing was charged. Retry shortly.',
      RETRY_AFTER_SECONDS,
    );
  }

  add(text: Buffer): void {
    const references = this.references.get(text) ?? 0;
    this.references.set(text, references + 1);
    if (references > 0) return;
    const wasHalfEmpty = this.isHalfEmpty;
    this.bytes += text.length;
    if (wasHalfEmpty && !this.isHalfEmpty) this.onHalfFull();
  }

  release(text: Buffer): void {
    const references = this.references.get(text) ?? 0;
    if (references > 1) {
      this.references.set(text, references - 1);
      return;
    }
    if (this.references.delete(text)) this.bytes -= text.length;
  }
}

/** `waiting` texts were fetched and are not yet due; `passing` ones are being sent, or can be read again from the cache. */
type TextState = 'waiting' | 'passing';

/** The texts that one call buffers for its reader. Only waiting ones limit what the call may fetch. */
export class BufferedTexts {
  private readonly texts = new Map<Buffer, TextState>();
  private readonly bytes = { waiting: 0, passing: 0 };
  private closed = false;

  constructor(private readonly memory: ResponseMemory) {}

  add(text: Buffer, state: TextState): void {
    if (this.closed || this.texts.has(text)) return;
    this.texts.set(text, state);
    this.bytes[state] += text.length;
    this.memory.add(text);
  }

  release(text: Buffer): void {
    const state = this.texts.get(text);
    if (!state) return;
    this.texts.delete(text);
    this.bytes[state] -= text.length;
    this.memory.release(text);
  }

  /** Releases all texts; those added afterwards do not count, because the response has no reader. */
  close(): void {
    this.closed = true;
    for (const text of this.texts.keys()) this.release(text);
  }

  /** Whether another fetch may start. */
  get mayFetch(): boolean {
    if (this.bytes.waiting >= this.memory.callBytesMax) return false;
    return !this.memory.isFull || this.bytes.waiting < SMALL_BYTES;
  }

  /** Whether a text that can be read again from the cache may be buffered from the start of the call. */
  mayPin(text: Buffer): boolean {
    return this.memory.isHalfEmpty && this.bytes.passing + text.length <= this.memory.callBytesMax;
  }

  /** Whether a waiting text may stay uncompressed. */
  mayStayUncompressed(text: Buffer): boolean {
    return this.memory.isHalfEmpty && this.bytes.waiting + text.length <= this.memory.callBytesMax / 4;
  }

  /** Whether a text of this size may be read from the cache to be sent. */
  mayRead(textBytes: number): boolean {
    return textBytes <= SMALL_BYTES || !this.memory.isFull;
  }
}
