import type { Type } from '@nestjs/common';
import { Argument, InvalidArgumentError, Option } from 'commander';
import { InvalidRequestError } from '../../domain/errors.js';
import { defaultOf, fieldsOf, Picked, type FieldOf } from '../../http/routes/field.js';
import { readInput } from '../../http/routes/validation.js';

/** What stands for a value in the help where that is not the name of the field. */
const VALUES: Readonly<Record<string, string>> = {
  ...{ languages: 'codes', include: 'names' },
  ...{ externalId: 'id', by: 'group', organization: 'org', after: 'id' },
};

/** Of an option that is null, which commander takes for a fault of the parser. */
const NONE = Symbol('null');

/** The request that the options of a command state. */
export function requestOf<Input extends object>(input: Type<Input>, options: object): Input {
  const defaults = Object.entries(fieldsOf(input)).map(([name, { stated }]) => [name, defaultOf(stated)]);
  const fields = Object.entries(options).map(([name, value]) => [name, value === NONE ? null : (value as unknown)]);
  return Object.assign(new input(), Object.fromEntries([...defaults, ...fields]) as object);
}

/** The options of a command for the fields of a request. */
export function fieldOptions(input: Type<object>): Option[] {
  return Object.keys(fieldsOf(input)).map((name) => fieldOption(input, name));
}

/**
 * The option of a command for a field of a request: `--chunk-seconds <n>` for `chunkSeconds`.
 *
 * @param description by default the short one of the field
 */
export function fieldOption(input: Type<object>, name: string, description?: string): Option {
  const field = fieldOf(input, name);
  const flag = flagOf(name);
  const help = description ?? helpOf(field);
  const words = field.kind.schema['enum'] as readonly string[] | undefined;
  if (words?.join() === 'true,false') return new Option(flag, help);
  const option = new Option(`${flag} <${valueName(name, field)}>`, help).argParser(
    parserOf(input, name, { none: NONE }),
  );
  if (words) option.choices(words);
  return option.makeOptionMandatory(field.stated.required === true);
}

/** The same with the default of the field, for a command that changes what an earlier one has created. */
export function presetOption(input: Type<object>, name: string): Option {
  return fieldOption(input, name).default(defaultOf(fieldOf(input, name).stated));
}

/** `--chunk-seconds` for `chunkSeconds`. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The argument of a command for a field of a request. @param nullWord what stands for null, if that is accepted */
export function fieldArgument(input: Type<object>, name: string, nullWord?: string): Argument {
  const field = fieldOf(input, name);
  return new Argument(`<${valueName(name, field)}>`, helpOf(field)).argParser(parserOf(input, name, { nullWord }));
}

function fieldOf(input: Type, name: string): FieldOf {
  const field = fieldsOf(input)[name];
  if (field === undefined) throw new Error(`${input.name} has no field ${name}.`);
  return field;
}

function helpOf({ kind, stated }: FieldOf): string {
  const { description, brief = description } = stated;
  const items = kind.schema['items'] as { enum?: readonly string[] } | undefined;
  return brief.replaceAll('`', '') + (items?.enum ? ` (${items.enum.join(',')})` : '');
}

function valueName(name: string, { kind }: FieldOf): string {
  const { type, format } = kind.schema;
  return type === 'integer' ? 'count' : (VALUES[name] ?? (typeof format === 'string' ? format : name));
}

/** Reads the text of an option by the class. A text that can be null has the word `none` for it. */
function parserOf(
  input: Type<object>,
  name: string,
  { nullWord, none = null }: { nullWord?: string | undefined; none?: typeof NONE | null },
): (text: string) => unknown {
  const { kind, stated } = fieldOf(input, name);
  const word = nullWord ?? (stated.nullable && kind.schema['type'] !== 'integer' ? 'none' : undefined);
  const one = Picked(input as Type<Record<string, unknown>>, name);
  return (text) => {
    if (text === word) return none;
    try {
      return readInput(one, { [name]: text }, 'text')[name];
    } catch (error) {
      throw error instanceof InvalidRequestError ? new InvalidArgumentError(error.details[0]?.message ?? '') : error;
    }
  };
}
