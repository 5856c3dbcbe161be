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
  // The keyword of OpenAPI 3.0 adds null to the `type` beside it; a value must still match an `allOf`, which may refuse null.
  if (copy['nullable'] === true && typeof copy['type'] === 'string') copy['type'] = [copy['type'], 'null'];
  return copy;
}
