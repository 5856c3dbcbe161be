import type { ArgumentMetadata, PipeTransform, Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { invalidField, InvalidRequestError, type InvalidField } from '../../domain/errors.js';
import { unknownParameterMessage, unknownParameters } from '../../domain/unknown-parameter.js';
import { createRedactor, type Redactor } from '../../observability/logging/logger.js';
import { absentValue, defaultOf, Field, fieldsOf, type FieldOf, type Form, type Stored } from './field.js';

const NAME_SHOWN_MAX = 80;
/** Far above any value of the interface, far below what exhausts the stack of what recurses. */
const NESTING_LEVELS_MAX = 32;

export const PAGE_SIZE_DEFAULT = 25;
export const PAGE_SIZE_MAX = 100;

export class PageQueryDto {
  @Field.integer({
    min: 1,
    cap: PAGE_SIZE_MAX,
    default: PAGE_SIZE_DEFAULT,
    description: 'The maximum number of entries of the list to return.',
  })
  limit: number;

  @Field.text({
    rule: 'the "next" value of a page',
    description: 'The `next` value of the previous page. By default the first page is returned.',
  })
  after?: string;
}

interface InputOptions {
  /** For the names of unknown fields, which can be misplaced keys. */
  redact?: Redactor;
  /** What the fields are parameters of. */
  of?: 'operation' | 'tool';
}

/**
 * Reads the fields of a class from an object, in the order of the class and with the defaults. Undeclared ones are errors, not ignored.
 *
 * @throws InvalidRequestError naming every field that is wrong or unknown
 */
export function readInput<T extends object>(
  type: Type<T>,
  input: unknown,
  form: Form,
  { redact = createRedactor(), of = 'operation' }: InputOptions = {},
): T {
  refuseNested(input);
  const fields = Object.entries(fieldsOf(type));
  const given: ReadonlyMap<string, unknown> = new Map(isObjectOrArray(input) ? Object.entries(input) : []);
  const repeated = [...given].flatMap(([name, value]) => (form === 'text' && typeof value !== 'string' ? [name] : []));
  const written = fields.flatMap(([name, { stated }]) => {
    const value = given.get(name) ?? (given.get(name) === null ? null : defaultOf(stated));
    return value === undefined ? [] : [[name, () => value]];
  });
  // Wrapped, because class-transformer goes through objects, and fails at a label with the name "constructor".
  const read = plainToInstance(type, Object.fromEntries(written) as object, { groups: [form] });
  const names = fields.map(([name]) => name);
  const wrong = validateSync(read, { groups: [form], stopAtFirstError: true, forbidUnknownValues: false }).map(
    ({ property: field, constraints = {} }): InvalidField => ({ field, message: Object.values(constraints).join(' ') }),
  );
  const unknown = [...given.keys()].filter((name) => !names.includes(name));
  const details = [
    ...repeated.flatMap((field) => (names.includes(field) ? [{ field, message: `${field} must be given once.` }] : [])),
    ...wrong.filter(({ field }) => !repeated.includes(field)),
  ];
  if (details.length === 0 && unknown.length === 0) return read;
  const unknownDetails = unknownParameters(unknown, (name) => {
    const shown = redact(name).slice(0, NAME_SHOWN_MAX);
    // Of `limit[]=1` it is `limit`, as the caller meant it.
    return { field: shown.split('[', 1)[0] || shown, message: unknownParameterMessage(shown, of, names) };
  });
  throw new InvalidRequestError([...details, ...unknownDetails]);
}

/** Also of a body that its handler reads: what it calls recurses too. */
function refuseNested(value: unknown): void {
  if (isNestedDeeper(value, NESTING_LEVELS_MAX))
    throw invalidField('body', `The body must not be nested more than ${NESTING_LEVELS_MAX} levels deep.`);
}

/**
 * Whether a value nests objects and arrays more than `levels` deep: a string or a number is 0 deep, `{}` is 1. Works
 * without recursion, because a few kilobytes of brackets would exhaust the stack.
 */
function isNestedDeeper(value: unknown, levels: number): boolean {
  let objects = [value].filter(isObjectOrArray);
  for (let depth = 0; objects.length > 0; depth += 1) {
    if (depth === levels) return true;
    objects = objects.flatMap((object): unknown[] => Object.values(object)).filter(isObjectOrArray);
  }
  return false;
}

function isObjectOrArray(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The forms of the parameters of handlers that are read by their classes. */
const FORMS: { readonly [Type in ArgumentMetadata['type']]?: Form } = { query: 'text', body: 'json' };
/** The types of single parameters, and of an object that the handler reads by itself. */
const NO_CLASSES: readonly unknown[] = [undefined, Object, String, Number, Boolean, Array];

/** Reads the query and the body of a request by their classes. */
export class StrictValidationPipe implements PipeTransform {
  constructor(private readonly redact: Redactor = createRedactor()) {}

  transform(value: unknown, { type, metatype }: Pick<ArgumentMetadata, 'type' | 'metatype'>): unknown {
    const form = FORMS[type];
    if (form === undefined) return value;
    if (metatype === undefined || NO_CLASSES.includes(metatype)) {
      refuseNested(value);
      return value;
    }
    return readInput(metatype as Type<object>, value, form, { redact: this.redact });
  }
}

/** What a caller wants: what is absent or null has its default. */
export type Wanted<T> = { readonly [Name in keyof T]?: T[Name] | null | undefined };

/** The fields of a request as a response repeats them. */
export function storedForm<T extends object>(type: Type<T>, request: Wanted<T>): Stored<T> {
  const given = request as Readonly<Record<string, unknown>>;
  const fields = Object.entries(fieldsOf(type)).map(([name, field]) => [name, given[name] ?? absentValue(field)]);
  return Object.fromEntries(fields) as Stored<T>;
}

const sinceOf = ({ stated }: FieldOf): number => stated.storedSince ?? 1;

/** The fields of a request that are not as if they were absent. */
export function givenFields<T extends object>(type: Type<T>, request: Stored<T>): [name: string, value: unknown][] {
  const values = request as Readonly<Record<string, unknown>>;
  const isGiven = (name: string, field: FieldOf): boolean =>
    JSON.stringify(values[name]) !== JSON.stringify(absentValue(field));
  return Object.entries(fieldsOf(type)).flatMap(([name, field]) =>
    isGiven(name, field) ? [[name, values[name]] as [string, unknown]] : [],
  );
}

/**
 * A request as its row has it. Fields of a later version are left out unless they are given, and only with them it states a version,
 * so that an earlier version of the service does not misread it.
 */
export function toStored<T extends object>(type: Type<T>, request: Stored<T>): object {
  const given = Object.fromEntries(givenFields(type, request));
  const fields = Object.entries(fieldsOf(type)).filter(([name, field]) => sinceOf(field) === 1 || name in given);
  const version = Math.max(1, ...fields.map(([, field]) => sinceOf(field)));
  const values = fields.map(([name, field]) => [name, name in given ? given[name] : absentValue(field)]);
  return { ...(version > 1 && { version }), ...(Object.fromEntries(values) as object) };
}

/**
 * Reads what `toStored` has written, also in an earlier version, by the class of the request. Further fields of the row are ignored.
 *
 * @throws Error when it cannot be read, or was stored by a later version of the service
 */
export function fromStored<T extends object>(type: Type<T>, row: object): Stored<T> {
  const fields = fieldsOf(type);
  const isAbsent = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
  const given = Object.entries(row).filter(([name, value]) => name in fields && !isAbsent(value));
  const version = 'version' in row ? Number(row.version) : 1;
  if (version > Math.max(1, ...Object.values(fields).map(sinceOf)))
    throw new Error(`The request was stored in the form ${version} of a later version of the service.`);
  return storedForm(type, readInput(type, Object.fromEntries(given), 'json'));
}
