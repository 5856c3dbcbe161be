import { CacheModule as NestCacheModule } from '@nestjs/cache-manager';
import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Keyv } from 'keyv';
import type { Environment } from '../config/environment.js';
import { cacheSecret, isSecretGuessable } from './cache-secret.js';
import { CacheWarnings } from './cache-warnings.js';
import { CacheWrites } from './cache-writes.js';
import { LocalEntries } from './local-entries.js';
import { MemoryStore } from './memory-store.js';
import { RedisConnection } from './redis-connection.js';
import { RedisStore } from './redis-store.js';
import { SharedCache, type SharedParts } from './shared-cache.js';
import { SharedCounts } from './shared-counts.js';
import { ValueSigner } from './value-signer.js';

/** The part of `CACHE_MAX_MEGABYTES` that copies of small entries may take; copies of texts take the rest. */
export const LOCAL_ENTRIES_SHARE = 1 / 8;

/**
 * cache-manager over one store: Redis or Valkey when `REDIS_URL` is set, else memory bounded in bytes. Every value is a
 * Buffer, so that nothing is serialized on the way in or out. The limits count in the same server.
 */
@Global()
@Module({})
export class CacheModule {
  static async forRoot(environment: Environment): Promise<DynamicModule> {
    const bytesMax = environment.CACHE_MAX_MEGABYTES * 1024 * 1024;
    const shared = environment.REDIS_URL ? await openShared(environment.REDIS_URL, environment, bytesMax) : undefined;
    const keyv = new Keyv({ store: shared?.store ?? new MemoryStore(bytesMax), useKeyPrefix: false });
    // Set after construction: the constructor takes an explicit undefined for "use the default".
    keyv.serialize = undefined;
    keyv.deserialize = undefined;
    // The store reports its own trouble once; an event nobody listens to would be thrown.
    keyv.on('error', () => undefined);
    return {
      module: CacheModule,
      imports: [NestCacheModule.register({ isGlobal: true, stores: keyv })],
      providers: [
        { provide: SharedCounts, useValue: new SharedCounts(shared?.connection) },
        { provide: SharedCache, useValue: new SharedCache(shared) },
        { provide: CacheWrites, useValue: shared?.writes ?? new CacheWrites(undefined) },
        ...(shared
          ? [
              // Provided so that it is closed with the application.
              { provide: RedisConnection, useValue: shared.connection },
              {
                provide: CacheWarnings,
                useValue: new CacheWarnings(shared.connection, isSecretGuessable(environment)),
              },
            ]
          : []),
      ],
      exports: [SharedCounts, SharedCache, CacheWrites],
    };
  }
}

async function openShared(url: string, environment: Environment, bytesMax: number): Promise<SharedParts> {
  const connection = await RedisConnection.open(url);
  const signer = new ValueSigner(await cacheSecret(environment));
  const writes = new CacheWrites(connection);
  const store = new RedisStore(connection, signer, writes, new LocalEntries(bytesMax * LOCAL_ENTRIES_SHARE));
  return { connection, signer, writes, store };
}
