import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { ServiceUnavailableError } from '../../domain/errors.js';
import { createGauge } from '../../observability/metrics-registry.js';

/** The fetched texts of one call may use this share of the memory, so that the calls of one key cannot use all of it. */
const CALLS_SHARE = 16;
/** A call that holds less than this continues when the memory is full: ordinary texts still reach prompt readers. */
const SMALL_BYTES = 512 * 1024;
/** The calls of one organization may hold this share of the memory. */
const ORGANIZATIONS_SHARE = 4;
const RETRY_AFTER_SECONDS = 5;
const FULL =
  'The service is at capacity: too many responses wait for slow readers. Nothing was charged. Retry shortly.';
const SHARE_FULL =
  'The open responses of this organization use its share of the response buffer. Nothing was charged. Read them to the end, ' +
  'or request fewer videos per call, then retry.';

/** Counts Buffers that are held. One that is held several times counts once. */
class BufferCount {
  bytes = 0;
  private readonly references = new Map<Buffer, number>();

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

  /** Whether it has no room for these Buffers. When nothing is held, there is room for a call of any size. */
  isFullWith(texts: readonly Buffer[], bytesMax: number): boolean {
    const added = texts.reduce((sum, text) => (this.references.has(text) ? sum : sum + text.length), 0);
    return this.bytes > 0 && this.bytes + added >= bytesMax;
  }
}

/** Counts what the calls of this process hold for their readers: the texts of their plans, and what waits to be sent. */
@Injectable()
export class ResponseMemory {
  readonly bytesMax: number;
  private readonly all = new BufferCount();
  /** Of the organizations that hold something. */
  private readonly organizations = new Map<string, BufferCount>();

  constructor(environment: Environment, registry: Registry) {
    this.bytesMax = environment.RESPONSE_BUFFER_MAX_MEGABYTES * 1024 * 1024;
    const held = 'Texts buffered for slow readers.';
    createGauge(registry, 'ct_response_buffer_bytes', held, () => this.heldBytes);
    const max = 'RESPONSE_BUFFER_MAX_MEGABYTES in bytes.';
    createGauge(registry, 'ct_response_buffer_max_bytes', max, () => this.bytesMax);
  }

  get heldBytes(): number {
    return this.all.bytes;
  }

  /** What has no room for these texts: the share of the organization, or the memory. */
  fullWith(organizationId: string, texts: readonly Buffer[] = []): string | undefined {
    if (this.organizations.get(organizationId)?.isFullWith(texts, this.bytesMax / ORGANIZATIONS_SHARE))
      return SHARE_FULL;
    return this.all.isFullWith(texts, this.bytesMax) ? FULL : undefined;
  }

  /** @throws ServiceUnavailableError when there is no room for the texts of a call */
  refuseWhenFull(organizationId: string, texts?: readonly Buffer[]): void {
    const message = this.fullWith(organizationId, texts);
    if (message !== undefined) throw new ServiceUnavailableError(message, RETRY_AFTER_SECONDS);
  }

  add(organizationId: string, text: Buffer): void {
    const own = this.organizations.get(organizationId) ?? new BufferCount();
    this.organizations.set(organizationId, own);
    for (const count of [own, this.all]) count.add(text);
  }

  release(organizationId: string, text: Buffer): void {
    const own = this.organizations.get(organizationId);
    for (const count of [own, this.all]) count?.release(text);
    if (own?.bytes === 0) this.organizations.delete(organizationId);
  }
}

/** What one call or response holds until it is sent. */
export class HeldTexts {
  private readonly texts = new Set<Buffer>();
  private fetchedBytes = 0;
  private closed = false;

  constructor(
    private readonly memory: ResponseMemory,
    private readonly organizationId: string,
  ) {}

  add(text: Buffer): void {
    if (this.closed || this.texts.has(text)) return;
    this.texts.add(text);
    this.memory.add(this.organizationId, text);
  }

  release(text: Buffer): boolean {
    const held = this.texts.delete(text);
    if (held) this.memory.release(this.organizationId, text);
    return held;
  }

  /** Holds what was in the cache when a call was planned. @throws ServiceUnavailableError when there is no room */
  addCached(texts: readonly Buffer[]): void {
    this.memory.refuseWhenFull(this.organizationId, texts);
    for (const text of texts) this.add(text);
  }

  /** Holds a text that was fetched for the call; only these limit what the call may fetch. */
  addFetched(text: Buffer): void {
    this.add(text);
    this.fetchedBytes += text.length;
  }

  releaseFetched(text: Buffer): void {
    if (this.release(text)) this.fetchedBytes -= text.length;
  }

  /** Releases all texts; those added afterwards do not count, because the response has no reader. */
  close(): void {
    this.closed = true;
    for (const text of this.texts) this.release(text);
    this.fetchedBytes = 0;
  }

  get mayFetch(): boolean {
    if (this.fetchedBytes >= this.memory.bytesMax / CALLS_SHARE) return false;
    return this.fetchedBytes < SMALL_BYTES || this.memory.fullWith(this.organizationId) === undefined;
  }
}
