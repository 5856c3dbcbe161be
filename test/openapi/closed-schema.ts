/** The schemas without additional properties: a response must not contain undocumented fields. */
export function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, closed(item)]),
  );
  if (copy['type'] === 'object' && typeof copy['properties'] === 'object' && !('additionalProperties' in copy)) {
    copy['additionalProperties'] = false;
  }
  // OpenAPI 3.0 has its own keyword for what JSON Schema expresses as a list of types.
  if (copy['nullable'] === true) {
    delete copy['nullable'];
    return { anyOf: [copy, { type: 'null' }] };
  }
  return copy;
}
