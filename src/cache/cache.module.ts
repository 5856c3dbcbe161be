import { CacheModule as NestCacheModule } from '@nestjs/cache-manager';
import { Global, Logger, Module, type DynamicModule, type OnApplicationBootstrap } from '@nestjs/common';
import { Keyv, type KeyvStoreAdapter } from 'keyv';
import { Registry } from 'prom-client';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics/metrics-registry.js';
import { cacheSecret, isSecretGuessable, ValueSigner } from './cache-signatures.js';
import { CacheWrites } from './cache-writes.js';
import { MemoryStore } from './memory-store.js';
import { RedisConnection } from './redis-connection.js';
import { LocalEntries, RedisStore } from './redis-store.js';
import { SharedCache, type SharedParts } from './shared-cache.js';
import { SharedCounts } from './shared-counts.js';
import { SharedDocuments } from './shared-documents.js';

/** The share of `CACHE_MAX_MEGABYTES` for local copies of small entries; copies of transcripts use the rest. */
export const LOCAL_ENTRIES_SHARE = 1 / 8;

/**
 * cache-manager with one store: Redis or Valkey when `REDIS_URL` is set, else memory bounded in bytes. The rate limits use
 * the same Redis connection.
 */
@Global()
@Module({})
export class CacheModule {
  static async forRoot(environment: Environment): Promise<DynamicModule> {
    const bytesMax = environment.CACHE_MAX_MEGABYTES * 1024 * 1024;
    const shared = environment.REDIS_URL ? await openShared(environment.REDIS_URL, environment, bytesMax) : undefined;
    const store = shared?.store ?? new MemoryStore(bytesMax);
    const memory = store instanceof MemoryStore ? store : null;
    return {
      module: CacheModule,
      imports: [MetricsRegistryModule, NestCacheModule.register({ isGlobal: true, stores: [keyvOf(store)] })],
      providers: [
        { provide: SharedCounts, useValue: new SharedCounts(shared?.connection) },
        { provide: SharedCache, useValue: new SharedCache(shared) },
        { provide: SharedDocuments, useValue: new SharedDocuments(shared, shared?.secret) },
        {
          provide: CacheWrites,
          inject: [Registry],
          useFactory: (registry: Registry) => {
            const writes = shared?.writes ?? new CacheWrites(undefined);
            registry.registerMetric(writes.failures);
            memory?.registerMetrics(registry);
            return writes;
          },
        },
        // Null with REDIS_URL.
        { provide: MemoryStore, useValue: memory },
        // Provided so that Nest runs their lifecycle hooks.
        ...(shared ? [{ provide: RedisConnection, useValue: shared.connection }] : []),
        ...(shared && isSecretGuessable(environment) ? [GuessableSecretWarning] : []),
      ],
      exports: [SharedCounts, SharedCache, SharedDocuments, MemoryStore],
    };
  }
}

class GuessableSecretWarning implements OnApplicationBootstrap {
  onApplicationBootstrap(): void {
    new Logger(CacheModule.name).warn({
      event: 'cache_secret_guessable',
      message:
        'Cache entries are signed with a secret derived from DATABASE_URL, which has no password. Set CACHE_SECRET.',
    });
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

async function openShared(
  url: string,
  environment: Environment,
  bytesMax: number,
): Promise<SharedParts & { secret: Buffer }> {
  const connection = await RedisConnection.open(url);
  const secret = await cacheSecret(environment);
  const signer = new ValueSigner(secret);
  const writes = new CacheWrites(connection);
  const store = new RedisStore(connection, signer, writes, new LocalEntries(bytesMax * LOCAL_ENTRIES_SHARE));
  return { connection, signer, writes, store, secret };
}
