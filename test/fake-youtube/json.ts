/** Any JSON value; an undefined property is left out when it is written. */
export type Json = string | number | boolean | null | undefined | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads a JSON text; undefined when it is none or not an object. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The string at a path of property names, or undefined. */
export function stringAt(value: Json, ...path: string[]): string | undefined {
  const found = path.reduce<Json>((at, key) => (isJsonObject(at) ? at[key] : undefined), value);
  return typeof found === 'string' ? found : undefined;
}
