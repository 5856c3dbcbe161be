import { crc32 } from 'node:zlib';
import { z } from 'zod';

/** The prefix of all keys. Changes with the stored form, so that the entries of other versions are not found. */
export const CACHE_FORMAT = 'ct8';

/** Parses JSON that another version may have stored; undefined when it does not match the schema. */
export function fromJson<T>(bytes: Buffer, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.safeParse(JSON.parse(bytes.toString('utf8'))).data;
  } catch {
    return undefined;
  }
}

/** A cached value, and the bytes that are stored with it. */
export interface CacheEntry<T> {
  readonly value: T;
  readonly bytes: Buffer;
}

/** Before the JSON: the checksum of everything that follows, and the length of the JSON. */
const HEAD_BYTES = 8;

/**
 * Encodes a value as JSON, with its key and with bytes that are not parsed. An entry that is damaged, truncated or stored
 * under another key is not read. A Buffer is parsed once: in the memory of this process an entry stays the same Buffer.
 */
export class KeyedCodec<T> {
  private readonly parsed = new WeakMap<Buffer, { key: string; entry: CacheEntry<T> }>();
  private readonly schema: z.ZodType<{ key: string; value: T }>;

  constructor(
    schema: z.ZodType<T>,
    private readonly countUnreadable: () => void,
  ) {
    this.schema = z.object({ key: z.string(), value: schema });
  }

  write(key: string, value: T, bytes: Buffer = Buffer.alloc(0)): Buffer {
    const json = Buffer.from(JSON.stringify({ key, value }));
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(json.length, 4);
    head.writeUInt32LE(crc32(bytes, crc32(json, crc32(head.subarray(4)))), 0);
    return Buffer.concat([head, json, bytes]);
  }

  /** The entry of a value from the cache. One that is unreadable or belongs to another key is counted and undefined. */
  read(key: string, stored: unknown): CacheEntry<T> | undefined {
    if (stored === undefined || stored === null) return undefined;
    const known = Buffer.isBuffer(stored) ? (this.parsed.get(stored) ?? this.parse(stored)) : undefined;
    if (known?.key === key) return known.entry;
    this.countUnreadable();
    return undefined;
  }

  private parse(stored: Buffer): { key: string; entry: CacheEntry<T> } | undefined {
    if (stored.length < HEAD_BYTES || crc32(stored.subarray(4)) !== stored.readUInt32LE(0)) return undefined;
    const jsonEnd = HEAD_BYTES + stored.readUInt32LE(4);
    const found = fromJson(stored.subarray(HEAD_BYTES, jsonEnd), this.schema);
    if (!found) return undefined;
    const known = { key: found.key, entry: { value: found.value, bytes: stored.subarray(jsonEnd) } };
    this.parsed.set(stored, known);
    return known;
  }
}
