import type { Cache } from '@nestjs/cache-manager';
import type { z } from 'zod';
import type { ReadingContext } from '../../platform/video-platform.js';
import { SingleFlight } from '../single-flight.js';
import type { CachedKind, TranscriptMetrics } from '../transcript-metrics.js';
import { KeyedCodec } from './keyed-codec.js';

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
   * @param serves whether a stored entry is sufficient for this call
   * @param purpose distinguishes concurrent loads of one entry that do not serve every call
   * @throws what `load` throws, or the reason of `context.signal`
   */
  async get(
    key: string,
    context: ReadingContext,
    load: (context: ReadingContext, known?: T) => Promise<T>,
    serves: (value: T) => boolean = () => true,
    purpose = '',
  ): Promise<T> {
    const known = this.codec.read(key, await this.cache.get<unknown>(key))?.value;
    const found = known !== undefined && serves(known);
    this.metrics.countLookups(this.kind, found);
    if (found) return known;
    const start = (shared: ReadingContext) => load(shared, known);
    const { value } = await this.flights.join(`${key} ${purpose}`, context, start, (fresh) => this.store(key, fresh));
    return value;
  }

  /** Never rejects: the cache counts and logs its own failures. */
  private async store(key: string, value: T): Promise<void> {
    await this.cache.set(key, this.codec.write(key, value), this.ttlSeconds * 1000);
  }
}
