import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { MemoryStore } from './memory-store.js';

/** How much of its room the cache in memory takes; a Redis tells that itself. */
@Injectable()
export class CacheSize {
  constructor(@Inject(CACHE_MANAGER) private readonly cache: Cache) {}

  /** Undefined when the cache is not in memory. */
  read(): { usedBytes: number; bytesMax: number } | undefined {
    for (const { store } of this.cache.stores) {
      if (store instanceof MemoryStore) return { usedBytes: store.usedBytes, bytesMax: store.bytesMax };
    }
    return undefined;
  }
}
