import type { Cache } from '@nestjs/cache-manager';
import type { z } from 'zod';
import { DomainError, UpstreamError } from '../../domain/errors.js';
import type { ReadingContext } from '../../platform/video-platform.js';
import { SingleFlight } from '../delivery/single-flight.js';
import type { CachedKind, TranscriptMetrics } from '../transcript-metrics.js';
import { KeyedCodec } from './keyed-codec.js';

/** How a call reads an entry. */
interface ReadOptions<T> {
  /** Whether a stored entry is sufficient for this call. */
  serves?: (value: T) => boolean;
  /** Distinguishes concurrent loads of one entry that do not serve every call. */
  purpose?: string;
  /** What serves the call of a stored entry that is not sufficient, when the platform refuses the load; not for background work. */
  whenRefused?: (known: T) => T | undefined;
}

/** A cache of one kind of entry, stored as JSON. A miss loads the entry, once for concurrent calls. */
export class ReadThroughCache<T> {
  private readonly flights = new SingleFlight<T>();
  private readonly codec: KeyedCodec<T>;

  constructor(
    private readonly kind: CachedKind,
    private readonly ttlSeconds: number,
    schema: z.ZodType<T>,
    private readonly cache: Cache,
    private readonly metrics: TranscriptMetrics,
  ) {
    this.codec = new KeyedCodec(schema, () => metrics.countUnreadable(kind));
  }

  /**
   * Returns the entry; loads it when it is missing, unreadable or does not serve this call.
   *
   * @param load is given the stored entry that does not serve this call, if there is one
   * @throws what `load` throws, or the reason of `context.signal`
   */
  async get(
    key: string,
    context: ReadingContext,
    load: (context: ReadingContext, known?: T) => Promise<T>,
    { serves = () => true, purpose = '', whenRefused }: ReadOptions<T> = {},
  ): Promise<T> {
    const known = this.codec.read(key, await this.cache.get<unknown>(key))?.value;
    const found = known !== undefined && serves(known);
    this.metrics.countLookups(this.kind, found);
    if (found) return known;
    const start = (shared: ReadingContext) => load(shared, known);
    try {
      const { value } = await this.flights.join(`${key} ${purpose}`, context, start, (fresh) => this.store(key, fresh));
      return value;
    } catch (error) {
      const isRefusal = error instanceof UpstreamError && context.background !== true;
      const last = isRefusal && known !== undefined ? whenRefused?.(known) : undefined;
      if (last !== undefined) return last;
      // What does not exist any more is not returned when the platform refuses it later.
      if (error instanceof DomainError && error.status === 404) await this.cache.del(key);
      throw error;
    }
  }

  /** Never rejects: the cache counts and logs its own failures. */
  private async store(key: string, value: T): Promise<void> {
    await this.cache.set(key, this.codec.write(key, value), this.ttlSeconds * 1000);
  }
}
