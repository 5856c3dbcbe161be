/** A parsed JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns the value if it is a JSON object, otherwise an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Returns the value if it is an array, otherwise an empty array. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Resolves `$ref` within a document, including chains of references. */
export function resolved(document: JsonObject, value: unknown): JsonObject {
  let object = objectOf(value);
  for (let hops = 0; typeof object['$ref'] === 'string' && hops < 32; hops += 1) {
    const names = object['$ref'].replace(/^#\//, '').split('/');
    object = objectOf(names.reduce<unknown>((inner, name) => objectOf(inner)[unescaped(name)], document));
  }
  return object;
}

function unescaped(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}
