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

/** Reads stored JSON, once for as long as the same bytes are held: in memory an entry stays the same Buffer. */
export class Decoded<T> {
  private readonly known = new WeakMap<Buffer, { value: T | undefined }>();

  constructor(private readonly reader: Reader<T>) {}

  of(bytes: Buffer): T | undefined {
    let known = this.known.get(bytes);
    if (!known) {
      known = { value: fromJson(bytes, this.reader) };
      this.known.set(bytes, known);
    }
    return known.value;
  }
}
