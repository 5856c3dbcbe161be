import { cacheSecret, ValueSigner } from '../../src/cache/cache-signatures.js';
import { Environment } from '../../src/config/environment.js';
import type { RedisServer } from './redis-server.js';

/** Services in tests have a database each, from which they would derive different secrets. */
export const CACHE_SECRET = 'the-same-in-every-service-of-a-test';

const EXPIRY_BYTES = 8;

/** Reads and writes entries in Redis as a service with this secret does. */
export async function signedEntries(redis: RedisServer, secret = CACHE_SECRET) {
  const signer = new ValueSigner(await cacheSecret(Object.assign(new Environment(), { CACHE_SECRET: secret })));
  return {
    /** The JSON of a small entry. */
    read: async (key: string): Promise<any> => {
      const signed = signer.verify(key, await redis.bytes(key));
      if (!signed) throw new Error(`${key} is not signed with this secret.`);
      return JSON.parse(signed.subarray(EXPIRY_BYTES).toString());
    },
    write: async (key: string, json: unknown): Promise<void> => {
      const expiry = Buffer.alloc(EXPIRY_BYTES);
      expiry.writeDoubleBE(Date.now() + 600_000);
      await redis.command('SET', key, signer.sign(key, Buffer.concat([expiry, Buffer.from(JSON.stringify(json))])));
    },
    writeText: async (key: string, text: Buffer): Promise<void> => {
      await redis.command('SET', key, signer.sign(key, text));
    },
  };
}
