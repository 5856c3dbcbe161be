import { applyDecorators, type Type } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { ValidateBy } from 'class-validator';
import { redactApiKeys } from '../../domain/api-key-text.js';
import { legiblePath } from '../server/request-paths.js';

/*
 * The fields of requests. A decorator states all of a field once, on the property of its class: the type, the bounds, the default and
 * the words. From the class follow the checks of a query, a body and a message (`readInput`), OpenAPI, the JSON Schema of the input
 * of an MCP tool (`jsonSchemaOf`), the option of a command (`fieldOption`), and what is stored and returned of a request
 * (`storedForm`, `StoredFields`).
 */

/** How the value of a field is written: as text, in a query or an option; as JSON, in a body; or as either, in a message. */
export type Form = 'text' | 'json' | 'either';
const FORMS: readonly Form[] = ['text', 'json', 'either'];

export interface Stated {
  /** For the reader of the OpenAPI document. */
  description: string;
  /** The short description: of the option of a command, and of the field in the response that repeats the request. */
  brief?: string;
  /** The description for a model, which reads it in each conversation. By default the short one. */
  hint?: string;
  /** What it is when it is absent. */
  default?: string | number | boolean | undefined;
  /** The same, which only the description states: types that are made of the OpenAPI document require a field of a body with a default. */
  impliedDefault?: string | number | boolean | undefined;
  required?: boolean;
  nullable?: boolean;
  example?: unknown;
  /** The version of the stored form that has it first, 1 by default. */
  storedSince?: number;
}

/** A kind of field: its values, and how they are read. */
export interface Kind {
  schema: Readonly<Record<string, unknown>>;
  /** Reads a text that stands for another value. By default the text is the value. */
  parse?: (text: string) => unknown;
  /** Whether a text stands for the value in JSON too. */
  takesText?: boolean;
  /** The one form of equal values. */
  normalize?: (value: never) => unknown;
  /** The rule that a value breaks, in words that follow the name of the field. */
  fault: (value: unknown, form: Form) => string | undefined;
}

export interface FieldOf {
  readonly kind: Kind;
  readonly stated: Stated;
}

const FIELDS = 'request:fields';

/** The fields of a class by their names: its own, then those of the class that it extends. */
export function fieldsOf({ prototype }: Type): Readonly<Record<string, FieldOf>> {
  return fieldsAt(prototype as object);
}

function fieldsAt(prototype: object | null): Readonly<Record<string, FieldOf>> {
  if (prototype === null) return {};
  const own = Reflect.getOwnMetadata(FIELDS, prototype) as Record<string, FieldOf> | undefined;
  const inherited = fieldsAt(Object.getPrototypeOf(prototype) as object | null);
  return { ...own, ...inherited, ...own };
}

/** States a field of a kind that no other class has. */
export function field(kind: Kind, stated: Stated): PropertyDecorator {
  const { description, required = false, nullable = false, default: preset, example } = stated;
  // OpenAPI 3.0 has it beside a type only.
  const schema = { ...kind.schema, ...(nullable && { nullable }) };
  const docs = {
    ...(kind.takesText ? { oneOf: [schema, { type: 'string' }] } : schema),
    ...{ description, required, example, default: preset },
  };
  const isAbsent = (value: unknown): boolean => (value === undefined && !required) || (value === null && nullable);
  const faultOf = (value: unknown, form: Form): string | undefined =>
    isAbsent(value)
      ? undefined
      : kind.fault(value, form)?.replace(/^must be /, nullable && form !== 'text' ? 'must be null or ' : '$&');
  const rules = FORMS.flatMap((form) => [
    // The value is wrapped: see `readInput`.
    Transform(({ value }: { value: () => unknown }) => valueOf(kind, value(), form), { groups: [form] }),
    ValidateBy(
      {
        name: 'field',
        validator: {
          validate: (value: unknown) => faultOf(value, form) === undefined,
          defaultMessage: (failed) => `${failed?.property} ${faultOf(failed?.value, form)}.`,
        },
      },
      { groups: [form] },
    ),
  ]);
  return (target, property) => {
    const fields: unknown = Reflect.getOwnMetadata(FIELDS, target);
    const more = { [String(property)]: { kind, stated } };
    Reflect.defineMetadata(FIELDS, Object.assign({}, fields, more), target);
    // Swagger reads the type from the schema; what the compiler notes of an array is an object.
    Reflect.defineMetadata('design:type', String, target, property);
    applyDecorators(ApiProperty(docs as ApiPropertyOptions), ...rules)(target, property);
  };
}

/** The value that is written in a form, which can still be invalid. */
function valueOf({ parse, takesText, normalize, fault }: Kind, written: unknown, form: Form): unknown {
  const isText = typeof written === 'string' && (form !== 'json' || takesText === true);
  const value = isText && parse ? parse(written) : written;
  return normalize && fault(value, form) === undefined ? normalize(value as never) : value;
}

const isText = (value: unknown): value is string => typeof value === 'string';

export const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isText);

/** NaN, which no rule accepts, for anything but decimal digits: `Number` also reads "1e3", " 5" and "0x10". */
const fromDigits = (text: string): number =>
  /^[0-9]+$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : Number.NaN;

const alternatives = (words: readonly string[]): string =>
  words.length > 2 ? `one of ${words.join(', ')}` : words.join(' or ');

/** The decorators of fields. */
export const Field = {
  /**
   * @param cap the largest value, as which larger ones count
   * @param rule what it must be, in words
   */
  integer({
    min,
    max = Infinity,
    cap,
    rule = max === Infinity ? `an integer of at least ${min} in decimal digits` : `an integer from ${min} to ${max}`,
    ...stated
  }: Stated & { min: number; max?: number; cap?: number; rule?: string }): PropertyDecorator {
    const capped = cap === undefined ? [] : [`Values above ${cap} are treated as ${cap}`];
    const isValid = (value: unknown) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
    return field(
      {
        schema: { type: 'integer', minimum: min, ...(max < Infinity && { maximum: max }) },
        parse: fromDigits,
        ...(cap !== undefined && { normalize: (value: number) => Math.min(value, cap) }),
        fault: (value) => (isValid(value) ? undefined : [`must be ${rule}`, ...capped].join('. ')),
      },
      { ...stated, description: [stated.description, ...capped.map((words) => `${words}.`)].join(' ') },
    );
  },

  number({ min, ...stated }: Stated & { min: number }): PropertyDecorator {
    const fault = (value: unknown) =>
      typeof value === 'number' && value >= min ? undefined : `must be a number of at least ${min}`;
    return field({ schema: { type: 'number', minimum: min }, parse: Number, fault }, stated);
  },

  boolean(stated: Stated): PropertyDecorator {
    const fault = (value: unknown) => (typeof value === 'boolean' ? undefined : 'must be true or false');
    return field({ schema: { type: 'boolean' }, fault }, stated);
  },

  /**
   * @param rule what it must be, in words
   * @param isStored whether it must not contain an API key, because it is stored and shown to all callers of the organization
   * @param docs bounds that are checked elsewhere
   */
  text({
    rule,
    min = 0,
    max = Infinity,
    pattern,
    isStored = false,
    docs = {},
    ...stated
  }: Stated & {
    rule: string;
    min?: number;
    max?: number;
    pattern?: RegExp;
    isStored?: boolean;
    docs?: object;
  }): PropertyDecorator {
    const schema = {
      ...{ type: 'string', ...docs },
      ...(min > 0 && { minLength: min }),
      ...(max < Infinity && { maxLength: max }),
      ...(pattern && { pattern: pattern.source }),
    };
    const fault = (value: unknown): string | undefined => {
      if (!isText(value) || value.length < min || value.length > max || (pattern && !pattern.test(value)))
        return `must be ${rule}`;
      return isStored && !hasNoApiKey(value) ? 'must not contain an API key' : undefined;
    };
    return field({ schema, fault }, stated);
  },

  /** A list of one or more texts. */
  texts({ max, rule, ...stated }: Stated & { max: number; rule: string }): PropertyDecorator {
    const fault = (value: unknown) => (isTexts(value) && value.length <= max ? undefined : `must be ${rule}`);
    return field({ schema: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: max }, fault }, stated);
  },

  /** One of some words. */
  word({ words, ...stated }: Stated & { words: readonly string[] }): PropertyDecorator {
    const fault = (value: unknown) =>
      isText(value) && words.includes(value) ? undefined : `must be ${alternatives(words)}`;
    return field({ schema: { type: 'string', enum: [...words] }, fault }, stated);
  },

  /**
   * One or more of some words: a list, or as text separated by commas.
   *
   * @param takesText whether JSON can have the text too; then the order of the words has no meaning
   */
  words({
    words,
    max = Infinity,
    takesText = true,
    ...stated
  }: Stated & { words: readonly string[]; max?: number; takesText?: boolean }): PropertyDecorator {
    const items = { type: 'string', enum: [...words] };
    const schema = { type: 'array', items, minItems: 1, ...(max < Infinity && { maxItems: max }) };
    return field(
      {
        schema,
        parse: (text) => text.split(','),
        takesText,
        ...(takesText && { normalize: (value: string[]) => words.filter((word) => value.includes(word)) }),
        fault: (value, form) => {
          if (isTexts(value) && value.length <= max && value.every((word) => words.includes(word))) return undefined;
          const list = `one or more of ${words.join(', ')}`;
          return form === 'json' ? `must be a list of ${list}` : `must be ${list}, separated by commas`;
        },
      },
      stated,
    );
  },
};

/** Whether a text that is stored or displayed contains no API key, which must be neither, also not percent-encoded. */
export function hasNoApiKey(text: string): boolean {
  const legible = legiblePath(text);
  return redactApiKeys(legible) === legible;
}

// Swagger's mapped types (`PickType` and others) look for class-validator and class-transformer by a `require` of their own,
// which finds another copy than the bundle's, or none in the image: the class would lose its rules.

type Union<Types extends readonly Type[]> = Types extends readonly [Type<infer First>, ...infer Rest extends Type[]]
  ? First & Union<Rest>
  : unknown;

/** A class with the fields of several. */
export function Fields<Types extends readonly [Type, ...Type[]]>(...types: Types): Type<Union<Types>> {
  class Mixed {}
  for (const type of types)
    for (const [name, { kind, stated }] of Object.entries(fieldsOf(type))) field(kind, stated)(Mixed.prototype, name);
  return Mixed as Type<Union<Types>>;
}

/** A class with some fields of another one. */
export function Picked<T, Name extends keyof T & string>(
  type: Type<T>,
  ...names: readonly Name[]
): Type<Pick<T, Name>> {
  class Part {}
  for (const [name, { kind, stated }] of Object.entries(fieldsOf(type)))
    if (names.some((picked) => picked === name)) field(kind, stated)(Part.prototype, name);
  return Part as Type<Pick<T, Name>>;
}

/**
 * A class with the fields of another one, none of them required or with a default: what a caller can change.
 *
 * @param options.nullable whether null stands for the value of a field that is absent, of those without a default
 */
export function OptionalFields<T>(type: Type<T>, options: { nullable: true }): Type<{ [N in keyof T]?: T[N] | null }>;
export function OptionalFields<T>(type: Type<T>): Type<Partial<T>>;
export function OptionalFields<T>(type: Type<T>, options: { nullable?: true } = {}): Type<object> {
  class Changes {}
  const optional = { required: false, default: undefined, impliedDefault: undefined };
  for (const [name, { kind, stated }] of Object.entries(fieldsOf(type)))
    field(kind, { ...stated, ...optional, ...(defaultOf(stated) === undefined && options) })(Changes.prototype, name);
  return Changes;
}

/** A class with the fields of another one, of which some are stated otherwise at one entry point: another default, other words. */
export function Restated<T>(type: Type<T>, changes: { [Name in keyof T]?: Partial<Stated> }): Type<T> {
  class Changed {}
  const changed: Readonly<Record<string, Partial<Stated> | undefined>> = changes;
  for (const [name, { kind, stated }] of Object.entries(fieldsOf(type)))
    field(kind, { ...stated, ...changed[name] })(Changed.prototype, name);
  return Changed as Type<T>;
}

/** A number that only a mistake reaches. */
const LARGE = 1_000_000_000;

/** The JSON Schema of an object with the fields of a class, in the words for models. */
export function jsonSchemaOf(type: Type): { type: 'object' } & Record<string, unknown> {
  const fields = Object.entries(fieldsOf(type));
  const required = fields.filter(([, { stated }]) => stated.required).map(([name]) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(
      fields.map(([name, { kind, stated }]) => {
        const { description, brief = description, hint = brief } = stated;
        const preset = defaultOf(stated);
        // Bounds that only a mistake reaches are in the error: a model pays for each word.
        const unlisted = {
          ...{ minLength: undefined, maxLength: undefined, minItems: undefined, maxItems: undefined },
          ...(Number(kind.schema['maximum']) >= LARGE && { maximum: undefined }),
        };
        return [
          name,
          { ...kind.schema, ...unlisted, ...(preset !== undefined && { default: preset }), description: hint },
        ];
      }),
    ),
    ...(required.length > 0 && { required }),
    ...{ additionalProperties: false },
  };
}

/** The fields of a request as a response repeats them: of what is absent, its default, an empty list or null. */
export type Stored<T> = {
  [Name in keyof T]-?: undefined extends T[Name]
    ? NonNullable<T[Name]> extends readonly unknown[] | Readonly<Record<string, string>>
      ? NonNullable<T[Name]>
      : NonNullable<T[Name]> | null
    : T[Name];
};

/** The class of `Stored`, for the OpenAPI document. */
export function StoredFields<T>(type: Type<T>): Type<Stored<T>> {
  class Repeated {}
  for (const [name, { kind, stated }] of Object.entries(fieldsOf(type))) {
    const { description, brief = description } = stated;
    const nullable = absentValue({ kind, stated }) === null;
    // An empty list is that of a request without the field.
    const docs: object = {
      ...{ ...kind.schema, minItems: undefined, maxItems: undefined },
      ...{ description: brief, required: true, ...(nullable && { nullable }) },
    };
    Reflect.defineMetadata('design:type', String, Repeated.prototype, name);
    ApiProperty(docs)(Repeated.prototype, name);
  }
  return Repeated as Type<Stored<T>>;
}

export const defaultOf = ({ default: preset, impliedDefault }: Stated): string | number | boolean | undefined =>
  preset ?? impliedDefault;

/** What a response and a row have of a field that is absent. */
export function absentValue({ kind, stated }: FieldOf): unknown {
  const empty: Readonly<Record<string, unknown>> = { array: [], object: {} };
  return defaultOf(stated) ?? empty[String(kind.schema['type'])] ?? (stated.required ? undefined : null);
}
