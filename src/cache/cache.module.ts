import { CacheModule as NestCacheModule } from '@nestjs/cache-manager';
import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Keyv } from 'keyv';
import type { Environment } from '../config/environment.js';
import { MemoryStore } from './memory-store.js';
import { RedisConnection } from './redis-connection.js';
import { RedisStore } from './redis-store.js';
import { SharedCounts } from './shared-counts.js';

/**
 * cache-manager over one store: Redis or Valkey when `REDIS_URL` is set, else memory bounded in bytes. Every value is a
 * Buffer, so that nothing is serialized on the way in or out. The limits count in the same server.
 */
@Global()
@Module({})
export class CacheModule {
  static async forRoot(environment: Environment): Promise<DynamicModule> {
    const connection = environment.REDIS_URL ? await RedisConnection.open(environment.REDIS_URL) : undefined;
    const store = connection
      ? new RedisStore(connection)
      : new MemoryStore(environment.CACHE_MAX_MEGABYTES * 1024 * 1024);
    const keyv = new Keyv({ store, useKeyPrefix: false });
    // Set after construction: the constructor takes an explicit undefined for "use the default".
    keyv.serialize = undefined;
    keyv.deserialize = undefined;
    // The store reports its own trouble once; an event nobody listens to would be thrown.
    keyv.on('error', () => undefined);
    return {
      module: CacheModule,
      imports: [NestCacheModule.register({ isGlobal: true, stores: keyv })],
      providers: [
        { provide: SharedCounts, useValue: new SharedCounts(connection) },
        // Provided so that it is closed with the application.
        ...(connection ? [{ provide: RedisConnection, useValue: connection }] : []),
      ],
      exports: [SharedCounts],
    };
  }
}
