import { LRUCache } from 'lru-cache';
import { BatchedLookups, type FindByHashes } from './batched-lookups.js';

const RECENT_MAX = 10_000;
const RECENT_MS = 10 * 60_000;
/** Pause between two queries for keys that were not valid of late. */
const UNPROVEN_INTERVAL_MS = 10;
/** The same for keys from addresses that keep failing to authenticate. */
const SUSPECT_INTERVAL_MS = 100;

/**
 * Bounds what keys that nobody was given cost the database, without ever refusing one unseen: every key is looked up on
 * every call, but only those that were valid within the last ten minutes by a query of their own. The others are looked
 * up together, and those from suspect addresses apart from the rest.
 */
export class KeyLookups<Found> {
  /** Hashes that were valid when they were last looked up. Being in here lets nobody in; it only chooses the query. */
  private readonly recent = new LRUCache<string, true>({ max: RECENT_MAX, ttl: RECENT_MS });
  private readonly unproven: BatchedLookups<Found>;
  private readonly suspect: BatchedLookups<Found>;

  constructor(private readonly findAll: FindByHashes<Found>) {
    this.unproven = new BatchedLookups(findAll, UNPROVEN_INTERVAL_MS);
    this.suspect = new BatchedLookups(findAll, SUSPECT_INTERVAL_MS);
  }

  /**
   * @param fromSuspect whether the key came from an address that keeps failing to authenticate
   * @throws what the query throws
   */
  async find(hash: Buffer, fromSuspect: boolean): Promise<Found | undefined> {
    const id = hash.toString('hex');
    const found = this.recent.has(id)
      ? (await this.findAll([hash])).get(id)
      : await (fromSuspect ? this.suspect : this.unproven).find(hash);
    if (found === undefined) this.recent.delete(id);
    else this.recent.set(id, true);
    return found;
  }
}
