import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { ServiceUnavailableError } from '../../domain/errors.js';

/** The fetched texts of one call may use this share of the memory, so that the calls of one key cannot use all of it. */
const CALLS_SHARE = 16;
/** A call that holds less than this continues when the memory is full: ordinary texts still reach prompt readers. */
const SMALL_BYTES = 512 * 1024;
const RETRY_AFTER_SECONDS = 5;

/** Counts the texts that the calls of this process hold for their readers. A Buffer that several calls share counts once. */
@Injectable()
export class ResponseMemory {
  readonly bytesMax: number;
  private readonly references = new Map<Buffer, number>();
  private bytes = 0;

  constructor(environment: Environment, registry: Registry) {
    this.bytesMax = environment.RESPONSE_BUFFER_MAX_MEGABYTES * 1024 * 1024;
    const registers = [registry];
    const held: Gauge = new Gauge({
      name: 'ct_response_buffer_bytes',
      help: 'Texts buffered for slow readers.',
      registers,
      collect: (): void => held.set(this.bytes),
    });
    new Gauge({
      name: 'ct_response_buffer_max_bytes',
      help: 'RESPONSE_BUFFER_MAX_MEGABYTES in bytes.',
      registers,
    }).set(this.bytesMax);
  }

  get heldBytes(): number {
    return this.bytes;
  }

  get isFull(): boolean {
    return this.bytes >= this.bytesMax;
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
    if (references === 0) this.bytes += text.length;
  }

  release(text: Buffer): void {
    const references = this.references.get(text) ?? 0;
    if (references > 1) this.references.set(text, references - 1);
    else if (this.references.delete(text)) this.bytes -= text.length;
  }
}

/** The texts that one call holds until they are sent. */
export class HeldTexts {
  private readonly texts = new Set<Buffer>();
  private fetchedBytes = 0;
  private closed = false;

  constructor(private readonly memory: ResponseMemory) {}

  /** Holds a text that was in the cache when the call was planned. */
  add(text: Buffer): void {
    if (this.closed || this.texts.has(text)) return;
    this.texts.add(text);
    this.memory.add(text);
  }

  /** Holds a text that was fetched for the call; only these limit what the call may fetch. */
  addFetched(text: Buffer): void {
    this.add(text);
    this.fetchedBytes += text.length;
  }

  /** Releases a fetched text that was sent. */
  releaseFetched(text: Buffer): void {
    if (!this.texts.delete(text)) return;
    this.memory.release(text);
    this.fetchedBytes -= text.length;
  }

  /** Releases all texts; those added afterwards do not count, because the response has no reader. */
  close(): void {
    this.closed = true;
    for (const text of this.texts) this.memory.release(text);
    this.texts.clear();
    this.fetchedBytes = 0;
  }

  /** Whether another fetch may start. */
  get mayFetch(): boolean {
    if (this.fetchedBytes >= this.memory.bytesMax / CALLS_SHARE) return false;
    return !this.memory.isFull || this.fetchedBytes < SMALL_BYTES;
  }
}
