import { createHmac, timingSafeEqual } from 'node:crypto';

/** HMAC-SHA-256, truncated: 128 bits cannot be guessed, and a look-up of a hundred entries carries them all. */
const TAG_BYTES = 16;

/**
 * Signs what is stored in a server that others can write to. The signature covers the key too, so that a value stored
 * under another key does not verify.
 */
export class ValueSigner {
  /** @param secret shared by all processes that share the cache; with another one every entry is a miss */
  constructor(private readonly secret: Buffer) {}

  /** The value with its signature in front. */
  sign(key: string, value: Buffer): Buffer {
    return Buffer.concat([this.tag(key, value), value]);
  }

  /** The signed value, in the same memory; undefined when the signature is not this key's and this value's. */
  verify(key: string, stored: Buffer): Buffer | undefined {
    if (stored.length < TAG_BYTES) return undefined;
    const value = stored.subarray(TAG_BYTES);
    return timingSafeEqual(stored.subarray(0, TAG_BYTES), this.tag(key, value)) ? value : undefined;
  }

  private tag(key: string, value: Buffer): Buffer {
    // The length first, so that no part of a key can pass for the beginning of a value.
    const mac = createHmac('sha256', this.secret).update(`${key.length}:${key}:`).update(value);
    return mac.digest().subarray(0, TAG_BYTES);
  }
}
