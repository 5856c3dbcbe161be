/**
 * Small readers over parsed JSON of unknown shape. None throws, for any input; each says with null (or undefined) that
 * the value is not there or not of its kind. Only own properties count, so that a key such as `__proto__` finds nothing.
 */

type Key = string | number;

/** The value at a path of property names and array indices, or undefined. */
export function at(value: unknown, ...path: readonly Key[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Record<Key, unknown>)[key];
  }
  return current;
}

/** True for an object that is neither null nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The elements of an array; none for everything else. */
export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A string with something in it besides white space, as it is; null for everything else. */
export function asString(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null;
}

/** A finite number, also one written as a decimal string; null for everything else. */
export function asNumber(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  return typeof value === 'string' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : null;
}

/** A count: a whole number from 0, also one written as a string. */
export function asCount(value: unknown): number | null {
  const number = asNumber(value);
  return number !== null && Number.isSafeInteger(number) && number >= 0 ? number : null;
}

/** The text of `{ simpleText }`, `{ runs: [{ text }] }` or `{ content }`, the three ways in which pages carry one. */
export function textOf(value: unknown): string | null {
  const runs = asArray(at(value, 'runs')).map((run) => at(run, 'text'));
  const joined = runs.filter((text) => typeof text === 'string').join('');
  return asString(at(value, 'simpleText')) ?? asString(at(value, 'content')) ?? asString(joined);
}
