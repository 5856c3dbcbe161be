import { LRUCache } from 'lru-cache';
import { SharedReads } from '../database/shared-reads.js';
import { entryLimit } from '../domain/entry-limit.js';

const RECENT_MAX = 10_000;
const RECENT_MS = 10 * 60_000;
/** Pause between two queries for keys that were not valid recently. */
const UNPROVEN_INTERVAL_MS = 10;
/** Pause between two queries for keys from addresses that repeatedly fail to authenticate. */
const SUSPECT_INTERVAL_MS = 100;
/** The maximum number of hashes in one query. */
const BATCH_MAX = 1_000;

/** Runs one query for the rows with these hashes. The result is keyed by hash, in hexadecimal. */
export type FindByHashes<Found> = (hashes: readonly Buffer[]) => Promise<ReadonlyMap<string, Found>>;

/**
 * Looks up API keys by hash, and bounds the database load of invalid keys without refusing any key unchecked. Every key
 * is looked up on every call. Keys that were valid within the last ten minutes share a query only while another runs; the
 * others are batched, those from suspect addresses separately.
 */
export class ApiKeyLookup<Found> {
  /** Hashes that were valid at their last lookup. An entry selects the query; it does not authenticate. */
  private readonly recent = new LRUCache<string, true>({ ...entryLimit(RECENT_MAX), ttl: RECENT_MS });
  private readonly proven: SharedReads<Found>;
  private readonly unproven: BatchedLookups<Found>;
  private readonly suspect: BatchedLookups<Found>;

  constructor(findAll: FindByHashes<Found>) {
    this.proven = new SharedReads((ids) => findAll(ids.map((id) => Buffer.from(id, 'hex'))));
    this.unproven = new BatchedLookups(findAll, UNPROVEN_INTERVAL_MS);
    this.suspect = new BatchedLookups(findAll, SUSPECT_INTERVAL_MS);
  }

  /**
   * @param fromSuspect whether the key was sent by an address that repeatedly fails to authenticate
   * @throws any error of the query
   */
  async find(hash: Buffer, fromSuspect: boolean): Promise<Found | undefined> {
    const id = hash.toString('hex');
    const found = this.recent.has(id)
      ? await this.proven.read(id)
      : await (fromSuspect ? this.suspect : this.unproven).find(hash);
    if (found === undefined) this.recent.delete(id);
    else this.recent.set(id, true);
    return found;
  }
}

interface PendingLookup<Found> {
  hash: Buffer;
  found: Promise<Found | undefined>;
  resolve: (found: Found | undefined) => void;
  reject: (error: unknown) => void;
}

/**
 * Batches lookups: at most one query at a time and one per interval. The first lookup after an idle interval is queried
 * immediately. Results are not cached, and a lookup never joins a query that has already started, so that a key revoked
 * meanwhile is refused.
 */
export class BatchedLookups<Found> {
  private readonly pending = new Map<string, PendingLookup<Found>>();
  private busy = false;
  private startedAtMs = -Infinity;

  constructor(
    private readonly findAll: FindByHashes<Found>,
    private readonly intervalMs: number,
  ) {}

  /** @throws any error of the query */
  find(hash: Buffer): Promise<Found | undefined> {
    const id = hash.toString('hex');
    const known = this.pending.get(id);
    if (known) return known.found;
    let [resolve, reject]: [PendingLookup<Found>['resolve'], PendingLookup<Found>['reject']] = [
      () => undefined,
      () => undefined,
    ];
    const found = new Promise<Found | undefined>((...settle) => ([resolve, reject] = settle));
    this.pending.set(id, { hash, found, resolve, reject });
    this.schedule();
    return found;
  }

  private schedule(): void {
    if (this.busy || this.pending.size === 0) return;
    this.busy = true;
    const waitMs = Math.min(this.intervalMs, this.startedAtMs + this.intervalMs - performance.now());
    if (waitMs > 0) setTimeout(() => void this.run(), waitMs);
    else void this.run();
  }

  private async run(): Promise<void> {
    this.startedAtMs = performance.now();
    const batch = [...this.pending].slice(0, BATCH_MAX);
    for (const [id] of batch) this.pending.delete(id);
    try {
      const found = await this.findAll(batch.map(([, { hash }]) => hash));
      for (const [id, { resolve }] of batch) resolve(found.get(id));
    } catch (error) {
      // Lookups that arrived meanwhile have already waited for this query. Another one would double their wait.
      for (const { reject } of [...batch.map(([, lookup]) => lookup), ...this.pending.values()]) reject(error);
      this.pending.clear();
    } finally {
      this.busy = false;
      this.schedule();
    }
  }
}
