import type { Cache } from '@nestjs/cache-manager';
import type { ReadingContext } from '../../platform/video-platform.js';
import { SingleFlight } from '../single-flight.js';
import { KeyedCodec, type Reader } from './keyed-codec.js';
import type { CacheLookups } from '../transcript-metrics.js';

/** One kind of cache entry, stored as JSON: how it is read back, how long it is kept, and shared loading on a miss. */
export class ReadThroughCache<T> {
  private readonly work = new SingleFlight<T>();
  private readonly values: KeyedCodec<T>;

  constructor(
    private readonly cache: Cache,
    private readonly ttlSeconds: number,
    reader: Reader<T>,
    private readonly lookups: CacheLookups,
  ) {
    this.values = new KeyedCodec(reader);
  }

  /**
   * The entry, loaded when it is missing, unreadable or does not `serve` this caller.
   *
   * @param purpose tells apart loads of one entry that would not serve every caller
   * @throws what `load` throws, or the reason of `context.signal`
   */
  async get(
    key: string,
    context: ReadingContext,
    load: (context: ReadingContext) => Promise<T>,
    serves: (value: T) => boolean = () => true,
    purpose = '',
  ): Promise<T> {
    const stored = await this.cache.get<unknown>(key);
    const known = Buffer.isBuffer(stored) ? this.values.read(key, stored) : undefined;
    if (known === undefined && stored !== undefined && stored !== null) this.lookups.unreadable();
    const found = known !== undefined && serves(known);
    this.lookups.count(found);
    if (found) return known;
    const { value } = await this.work.join(`${key} ${purpose}`, context, load, (fresh) => this.store(key, fresh));
    return value;
  }

  /** A cache that does not take it is no reason to fail; the store counts and logs that. */
  private async store(key: string, value: T): Promise<void> {
    await this.cache.set(key, this.values.write(key, value), this.ttlSeconds * 1000);
  }
}
