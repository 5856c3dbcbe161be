/** Any JSON value; undefined properties are omitted when it is serialized. */
export type Json = string | number | boolean | null | undefined | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses a JSON object; undefined when the text is anything else. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The value at a path of property names, or undefined. */
export function at(value: Json, ...path: string[]): Json {
  return path.reduce<Json>((found, key) => (isJsonObject(found) ? found[key] : undefined), value);
}

/** The string at a path of property names, or undefined. */
export function stringAt(value: Json, ...path: string[]): string | undefined {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : undefined;
}
