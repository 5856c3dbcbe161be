import { CacheModule as NestCacheModule } from '@nestjs/cache-manager';
import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Keyv } from 'keyv';
import type { Environment } from '../config/environment.js';
import { MemoryStore } from './memory-store.js';
import { RedisStore } from './redis-store.js';

/**
 * cache-manager over one store: Redis or Valkey when `REDIS_URL` is set, else memory bounded in bytes. Every value is a
 * Buffer, so that nothing is serialized on the way in or out.
 */
@Global()
@Module({})
export class CacheModule {
  static forRoot(environment: Environment): DynamicModule {
    const store = environment.REDIS_URL
      ? new RedisStore(environment.REDIS_URL)
      : new MemoryStore(environment.CACHE_MAX_MEGABYTES * 1024 * 1024);
    const keyv = new Keyv({ store, useKeyPrefix: false });
    // Set after construction: the constructor takes an explicit undefined for "use the default".
    keyv.serialize = undefined;
    keyv.deserialize = undefined;
    // The store reports its own trouble once; an event nobody listens to would be thrown.
    keyv.on('error', () => undefined);
    return { module: CacheModule, imports: [NestCacheModule.register({ isGlobal: true, stores: keyv })] };
  }
}
