import { listOf, objectOf, resolved, type JsonObject } from './json.js';

/** Whether the client or the service writes the values of a schema. */
export type Direction = 'request' | 'response';

/** The documents to compare, and the breaking changes found so far. */
export interface Comparison {
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly direction: Direction;
  readonly faults: string[];
  /** Pairs of schemas that are being compared, which ends the recursion of recursive schemas. */
  readonly seen: Set<string>;
}

const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const ALTERNATIVES = ['allOf', 'anyOf', 'oneOf'];

/**
 * Records the changes of a schema that break clients of the earlier one. A request schema may accept more, and a response
 * schema may contain more, but never less.
 */
export function compareSchemas(comparison: Comparison, where: string, before: unknown, after: unknown): void {
  const pair = JSON.stringify([before, after]);
  if (comparison.seen.has(pair)) return;
  comparison.seen.add(pair);
  const [old, now] = [resolved(comparison.before, before), resolved(comparison.after, after)];
  compareTypes(comparison, where, old, now);
  compareEnums(comparison, where, old, now);
  compareProperties(comparison, where, old, now);
  if (comparison.direction === 'request') compareBounds(comparison, where, old, now);
  for (const word of ALTERNATIVES) compareAlternatives(comparison, where, word, listOf(old[word]), listOf(now[word]));
  if ('items' in old) compareSchemas(comparison, `${where}[]`, old['items'], now['items']);
  if ('additionalProperties' in old) {
    compareSchemas(comparison, `${where}.*`, old['additionalProperties'], now['additionalProperties']);
  }
  comparison.seen.delete(pair);
}

function compareTypes({ direction, faults }: Comparison, where: string, before: JsonObject, after: JsonObject): void {
  const [old, now] = [typesOf(before), typesOf(after)];
  const dropped = old.filter((type) => !now.includes(type) && !(type === 'integer' && now.includes('number')));
  const gained = now.filter((type) => !old.includes(type));
  if (dropped.length > 0 && now.length > 0) faults.push(`${where}: the type ${dropped.join(', ')} was removed`);
  else if (direction === 'request' && old.length === 0 && now.length > 0) faults.push(`${where}: a type was added`);
  else if (direction === 'response' && (gained.length > 0 || now.length < old.length)) {
    faults.push(`${where}: the type is wider (${now.join(', ') || 'any'})`);
  }
  if (before['format'] !== after['format'] && (direction === 'response' || after['format'] !== undefined)) {
    faults.push(`${where}: the format changed (${String(after['format'])})`);
  }
}

function typesOf(schema: JsonObject): readonly string[] {
  const { type, nullable } = schema;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  return [...types, nullable === true && 'null'].filter((name) => typeof name === 'string');
}

function compareEnums({ direction, faults }: Comparison, where: string, before: JsonObject, after: JsonObject): void {
  const [old, now] = [before['enum'], after['enum']];
  if (!Array.isArray(old)) {
    if (Array.isArray(now) && direction === 'request') faults.push(`${where}: a list of allowed values was added`);
    return;
  }
  if (!Array.isArray(now)) {
    if (direction === 'response') faults.push(`${where}: the list of values was removed`);
    return;
  }
  for (const value of old) {
    if (!now.includes(value)) faults.push(`${where}: the value ${JSON.stringify(value)} was removed`);
  }
}

function compareProperties(comparison: Comparison, where: string, before: JsonObject, after: JsonObject): void {
  const { direction, faults } = comparison;
  const [old, now] = [objectOf(before['properties']), objectOf(after['properties'])];
  const [needed, needs] = [listOf(before['required']), listOf(after['required'])];
  for (const [name, schema] of Object.entries(old)) {
    if (name in now) compareSchemas(comparison, `${where}.${name}`, schema, now[name]);
    else faults.push(`${where}.${name}: the field was removed`);
  }
  const broken =
    direction === 'request'
      ? needs.filter((name) => !needed.includes(name))
      : needed.filter((name) => !needs.includes(name));
  for (const name of broken.filter((one) => direction === 'request' || String(one) in now)) {
    faults.push(
      `${where}.${String(name)}: the field ${direction === 'request' ? 'is now required' : 'is now optional'}`,
    );
  }
  if (direction === 'request' && before['additionalProperties'] !== false && after['additionalProperties'] === false) {
    faults.push(`${where}: other fields are now refused`);
  }
}

function compareBounds({ faults }: Comparison, where: string, before: JsonObject, after: JsonObject): void {
  const narrower = (word: string, isNarrower: (old: number, now: number) => boolean): void => {
    const [old, now] = [before[word], after[word]];
    if (typeof now === 'number' && (typeof old !== 'number' || isNarrower(old, now))) {
      faults.push(`${where}: ${word} is narrower (${now})`);
    }
  };
  for (const word of LOWER_BOUNDS) narrower(word, (old, now) => now > old);
  for (const word of UPPER_BOUNDS) narrower(word, (old, now) => now < old);
  if (after['pattern'] !== undefined && after['pattern'] !== before['pattern']) {
    faults.push(`${where}: the pattern changed`);
  }
}

function compareAlternatives(
  comparison: Comparison,
  where: string,
  word: string,
  before: readonly unknown[],
  after: readonly unknown[],
): void {
  const mayGrow = comparison.direction === 'request' ? word !== 'allOf' : word === 'allOf';
  if (after.length < before.length || (after.length > before.length && before.length > 0 && !mayGrow)) {
    comparison.faults.push(`${where}: ${word} has ${after.length} instead of ${before.length} members`);
    return;
  }
  before.forEach((schema, index) => compareSchemas(comparison, `${where}(${word} ${index + 1})`, schema, after[index]));
}
