/** Reads one value of unknown origin; undefined when it is not what it should be. */
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

/** Reads JSON that was stored earlier, perhaps by another version; undefined for anything that does not fit. */
export function fromJson<T>(bytes: Buffer, reader: Reader<T>): T | undefined {
  try {
    return reader(JSON.parse(bytes.toString('utf8')));
  } catch {
    return undefined;
  }
}

/**
 * Values stored as JSON together with the key that they belong to, so that one that has come under another key is not
 * taken for its. Read once for as long as the same bytes are held: in memory an entry stays the same Buffer.
 */
export class KeyedCodec<T> {
  private readonly known = new WeakMap<Buffer, { key: string; value: T } | { key: undefined }>();
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

  /** The value; undefined when it cannot be read, or is another key's. */
  read(key: string | undefined, bytes: Buffer): T | undefined {
    let known = this.known.get(bytes);
    if (!known) {
      known = fromJson(bytes, this.reader) ?? { key: undefined };
      this.known.set(bytes, known);
    }
    return known.key !== undefined && known.key === key ? known.value : undefined;
  }
}
