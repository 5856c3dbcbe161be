/** The prefix of all keys. Changes with the stored form, so that the entries of other versions are not found. */
export const CACHE_FORMAT = 'ct5';

/** Reads a value of unknown origin; undefined when it does not have the expected type. */
export type Reader<T> = (value: unknown) => T | undefined;

export const text: Reader<string> = (value) => (typeof value === 'string' ? value : undefined);
export const finite: Reader<number> = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;
export const flag: Reader<boolean> = (value) => (typeof value === 'boolean' ? value : undefined);

export function nullable<T>(reader: Reader<T>): Reader<T | null> {
  return (value) => (value === null ? null : reader(value));
}

export function oneOf<const T extends string>(values: readonly T[]): Reader<T> {
  return (value) => values.find((known) => known === value);
}

export function listOf<T>(reader: Reader<T>): Reader<T[]> {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    const items: T[] = [];
    for (const element of value) {
      const item = reader(element);
      if (item === undefined) return undefined;
      items.push(item);
    }
    return items;
  };
}

export function record<T extends object>(readers: { [Key in keyof T]: Reader<T[Key]> }): Reader<T> {
  const entries = Object.entries<Reader<unknown>>(readers);
  return (value) => {
    if (typeof value !== 'object' || value === null) return undefined;
    const source = value as Record<string, unknown>;
    const result: Record<string, unknown> = {};
    for (const [key, reader] of entries) {
      const field = reader(source[key]);
      if (field === undefined) return undefined;
      result[key] = field;
    }
    return result as T;
  };
}

/** Parses JSON that another version may have stored; undefined when it does not match the reader. */
export function fromJson<T>(bytes: Buffer, reader: Reader<T>): T | undefined {
  try {
    return reader(JSON.parse(bytes.toString('utf8')));
  } catch {
    return undefined;
  }
}

/**
 * Encodes values as JSON together with their key, so that a value stored under a wrong key is not read. A Buffer is parsed
 * once: in the cache of this process an entry stays the same Buffer.
 */
export class KeyedCodec<T> {
  private readonly parsed = new WeakMap<Buffer, { key: string; value: T } | { key: undefined }>();
  private readonly reader: Reader<{ key: string; value: T }>;

  constructor(reader: Reader<T>) {
    this.reader = (stored) => {
      const key = record({ key: text })(stored)?.key;
      const value =
        typeof stored === 'object' && stored !== null && 'value' in stored ? reader(stored.value) : undefined;
      return key === undefined || value === undefined ? undefined : { key, value };
    };
  }

  write(key: string, value: unknown): Buffer {
    return Buffer.from(JSON.stringify({ key, value }));
  }

  /** The value; undefined when it is unreadable or belongs to another key. */
  read(key: string | undefined, bytes: Buffer): T | undefined {
    let known = this.parsed.get(bytes);
    if (!known) {
      known = fromJson(bytes, this.reader) ?? { key: undefined };
      this.parsed.set(bytes, known);
    }
    return known.key !== undefined && known.key === key ? known.value : undefined;
  }
}
