/** More than any value of the interface needs, and nothing to the stack of what validates it. */
export const NESTING_LEVELS_MAX = 32;

/**
 * Whether objects and lists stand in each other more than `levels` deep; a text or a number is 0 deep, `{}` 1. It works
 * without recursion, unlike what validates a value: a few kilobytes of brackets would exhaust the stack there.
 */
export function isNestedDeeper(value: unknown, levels: number): boolean {
  let objects = [value].filter(isObject);
  for (let depth = 0; objects.length > 0; depth += 1) {
    if (depth === levels) return true;
    objects = objects.flatMap((object): unknown[] => Object.values(object)).filter(isObject);
  }
  return false;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
