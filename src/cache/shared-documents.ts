import { createHmac, randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { ValueSigner } from './cache-signatures.js';
import type { RedisConnection } from './redis-connection.js';

/** Updates run in the background, so a slow server delays nothing; one that is too slow counts as unavailable. */
const TIMEOUT_MS = 500;
const ATTEMPTS_MAX = 5;

/** Replaces a value unless it changed since it was read. ARGV: the value that was read, the new one, its TTL. */
const REPLACE = `
  if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  return 1`;

/** Deletes a key unless another value was stored since. ARGV: the value. */
const RELEASE = `
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  return redis.call('DEL', KEYS[1])`;

/** Ends a claim before its time. Once the key is claimed by another process, it does nothing. Never rejects. */
export type ReleaseClaim = () => Promise<void>;

/**
 * Small documents that all replicas read and change, in Redis or Valkey. They are signed like cache entries. Without a
 * server, and while it is unavailable, every operation reports that, and each process goes on with what it knows.
 */
@Injectable()
export class SharedDocuments {
  /** @param secret shared by all replicas; it hides what the keys name */
  constructor(
    private readonly parts: { connection: RedisConnection; signer: ValueSigner } | undefined,
    private readonly secret: Buffer = Buffer.alloc(0),
  ) {}

  /** Whether REDIS_URL is set; the server may still be unavailable. */
  get configured(): boolean {
    return this.parts !== undefined;
  }

  /** A key that does not reveal what it names, such as the URL of a proxy with its password. */
  keyOf(kind: string, name: string): string {
    const digest = createHmac('sha256', this.secret).update(`${kind}:${name}`).digest('base64url');
    return `ct:${kind}:${digest.slice(0, 22)}`;
  }

  /**
   * Changes a document atomically: `change` gets the stored bytes (undefined for none or for a wrong signature) and runs
   * again when another replica was faster.
   *
   * @param change returns the new bytes, or undefined to leave the document as it is
   * @returns the document as it is now; undefined without one, and when the server is unavailable
   */
  async update(
    key: string,
    ttlMs: number,
    change: (stored: Buffer | undefined) => Buffer | undefined,
  ): Promise<Buffer | undefined> {
    const { parts } = this;
    if (!parts) return undefined;
    const { connection, signer } = parts;
    try {
      for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
        const stored = await connection.run((_client, bytes) => bytes.get(key), TIMEOUT_MS);
        const known = stored ? signer.verify(key, stored) : undefined;
        const changed = change(known);
        if (!changed) return known;
        const options = {
          keys: [key],
          arguments: [stored ?? Buffer.alloc(0), signer.sign(key, changed), String(Math.ceil(ttlMs))],
        };
        if ((await connection.run((client) => client.eval(REPLACE, options), TIMEOUT_MS)) === 1) return changed;
      }
    } catch {
      // The connection logs an unavailable server.
    }
    return undefined;
  }

  /**
   * Claims a key, until the claim is released or the time has passed. It is granted while the server is unavailable.
   *
   * @returns null when it is claimed already
   */
  async claim(key: string, ttlMs: number): Promise<ReleaseClaim | null> {
    const { parts } = this;
    if (!parts) return () => Promise.resolve();
    const value = randomUUID();
    // Also when the server did not respond in time: it may have stored the claim.
    const release = () => this.release(key, value);
    const options = { condition: 'NX', expiration: { type: 'PX', value: Math.ceil(ttlMs) } } as const;
    try {
      const stored = await parts.connection.run((client) => client.set(key, value, options), TIMEOUT_MS);
      return stored === null ? null : release;
    } catch {
      return release;
    }
  }

  private async release(key: string, value: string): Promise<void> {
    const options = { keys: [key], arguments: [value] };
    try {
      await this.parts?.connection.run((client) => client.eval(RELEASE, options), TIMEOUT_MS);
    } catch {
      // It ends with its time.
    }
  }
}
