import { CacheModule as NestCacheModule } from '@nestjs/cache-manager';
import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Keyv, type KeyvStoreAdapter } from 'keyv';
import { Registry } from 'prom-client';
import type { Environment } from '../config/environment.js';
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
  static async forRoot({ CACHE_MAX_MEGABYTES, REDIS_URL }: Environment): Promise<DynamicModule> {
    const connection = REDIS_URL === undefined ? null : await RedisConnection.open(REDIS_URL);
    const storesFor = (registry: Registry): KeyvStoreAdapter[] => {
      const memory = new MemoryStore(CACHE_MAX_MEGABYTES * 1024 * 1024);
      memory.registerMetrics(registry);
      const writeFailures = countWriteFailures(registry);
      return connection ? [memory, new RedisStore(connection, memory, writeFailures)] : [memory];
    };
    return {
      module: CacheModule,
      imports: [
        NestCacheModule.registerAsync({
          isGlobal: true,
          imports: [MetricsRegistryModule],
          inject: [Registry],
          useFactory: (registry: Registry) => ({ stores: storesFor(registry).map(keyvOf) }),
        }),
      ],
      // Null without REDIS_URL.
      providers: [{ provide: RedisConnection, useValue: connection }],
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
