import { cacheSecret, ValueSigner } from '../../../../src/cache/cache-signatures.js';
import { Environment } from '../../../../src/config/environment.js';
import type { Entry } from './corrupt-entries.js';

const EXPIRY_BYTES = 8;

/** Signs entries as a service with this secret does. */
export class EntrySigner {
  private constructor(private readonly signer: ValueSigner) {}

  static async with(secret: string): Promise<EntrySigner> {
    const environment = Object.assign(new Environment(), { CACHE_SECRET: secret });
    return new EntrySigner(new ValueSigner(await cacheSecret(environment)));
  }

  /** The value of an entry; undefined when its signature is invalid. */
  open(entry: Entry): Buffer {
    const signed = this.signer.verify(entry.key, entry.value) ?? Buffer.alloc(EXPIRY_BYTES);
    return hasExpiry(entry) ? signed.subarray(EXPIRY_BYTES) : signed;
  }

  seal(entry: Entry, value: Buffer): Buffer {
    const expiry = Buffer.alloc(EXPIRY_BYTES);
    expiry.writeDoubleBE(Date.now() + 600_000);
    return this.signer.sign(entry.key, hasExpiry(entry) ? Buffer.concat([expiry, value]) : value);
  }
}

function hasExpiry({ kind }: Entry): boolean {
  return kind !== 'text' && kind !== 'deflated';
}
