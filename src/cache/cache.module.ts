import { CacheModule as NestCacheModule } from '@nestjs/cache-manager';
import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Keyv, type KeyvStoreAdapter } from 'keyv';
import { Registry } from 'prom-client';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { MemoryStore } from './memory-store.js';
import { RedisConnection } from './redis-connection.js';
import { countWriteFailures, RedisStore } from './redis-store.js';

/**
 * cache-manager with a store in memory, bounded in bytes, and behind it Redis or Valkey when `REDIS_URL` is set: what this
 * process has used last is available while the server is not. The rate limits use the same connection.
 */
@Global()
@Module({})
export class CacheModule {
  static async forRoot(environment: Environment): Promise<DynamicModule> {
    const memory = new MemoryStore(environment.CACHE_MAX_MEGABYTES * 1024 * 1024);
    const { REDIS_URL } = environment;
    const connection = REDIS_URL === undefined ? null : await RedisConnection.open(REDIS_URL);
    const writeFailures = countWriteFailures();
    const redis = connection && new RedisStore(connection, memory, writeFailures);
    return {
      module: CacheModule,
      imports: [
        MetricsRegistryModule,
        NestCacheModule.register({ isGlobal: true, stores: [memory, ...(redis ? [redis] : [])].map(keyvOf) }),
      ],
      providers: [
        {
          provide: MemoryStore,
          inject: [Registry],
          useFactory: (registry: Registry) => {
            memory.registerMetrics(registry);
            registry.registerMetric(writeFailures);
            return memory;
          },
        },
        // Null without REDIS_URL.
        { provide: RedisConnection, useValue: connection },
      ],
      exports: [RedisConnection],
    };
  }
}

/** Values are Buffers, so nothing is serialized. */
function keyvOf(store: KeyvStoreAdapter): Keyv {
  const keyv = new Keyv({ store, useKeyPrefix: false });
  // Set after construction: the constructor replaces an explicit undefined by the default.
  keyv.serialize = undefined;
  keyv.deserialize = undefined;
  // The store logs its own failures; an 'error' event without a listener would be thrown.
  keyv.on('error', () => undefined);
  return keyv;
}
