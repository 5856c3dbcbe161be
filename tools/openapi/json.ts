/** A JSON object, as it was parsed. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The value if it is a JSON object, and otherwise an empty one. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** The value if it is a list, and otherwise an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Follows `$ref` within a document, as often as one leads to another. */
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
