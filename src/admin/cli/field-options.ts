import type { Type } from '@nestjs/common';
import { DECORATORS } from '@nestjs/swagger';
import { Argument, InvalidArgumentError, Option } from 'commander';
import { parseWholeNumber } from '../../config/variables.js';
import { parseWords } from '../../transcripts/dto/transcripts-query.dto.js';

/** What the class of a request says about a field, as in the OpenAPI document. */
interface Field {
  type?: unknown;
  format?: string;
  description?: string;
  required?: boolean;
  nullable?: boolean;
  enum?: readonly string[];
  /** Of a list of words. */
  items?: { enum?: readonly string[] };
  minimum?: number;
  maximum?: number;
}

/** What stands for a value in the help where that is not the name of the field. */
const VALUES: Readonly<Record<string, string>> = { externalId: 'id', by: 'group', organization: 'org', after: 'id' };

/** Of an option that is null, which commander takes for a fault of the parser. */
const NONE = Symbol('null');

/** The request that the options of a command state. */
export function requestOf<Input extends object>(input: Type<Input>, options: object): Input {
  const fields = Object.entries(options).map(([name, value]) => [name, value === NONE ? null : (value as unknown)]);
  return Object.assign(new input(), Object.fromEntries(fields) as object);
}

/** The options of a command for the fields of a request. */
export function fieldOptions(input: Type<object>): Option[] {
  const names: unknown = Reflect.getMetadata(DECORATORS.API_MODEL_PROPERTIES_ARRAY, input.prototype as object);
  // Each begins with a colon.
  return ((names ?? []) as string[]).map((name) => fieldOption(input, name.slice(1)));
}

/** The option of a command for a field of a request: `--monthly-limit <count>` for `monthlyLimit`. */
function fieldOption(input: Type<object>, name: string): Option {
  const field = fieldOf(input, name);
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  if (field.enum?.join() === 'true,false') return new Option(flag, describe(field));
  const option = parsed(new Option(`${flag} <${valueName(name, field)}>`, describe(field)), field);
  return option.makeOptionMandatory(field.required !== false);
}

/** The argument of a command for a field of a request. @param nullWord what stands for null, if that is accepted */
export function fieldArgument(input: Type<object>, name: string, nullWord?: string): Argument {
  const field = fieldOf(input, name);
  return parsed(new Argument(`<${valueName(name, field)}>`, describe(field)), field, nullWord);
}

/** A parser of whole numbers. */
export function wholeNumberArgument(min: number, max?: number): (text: string) => number {
  return (text) => {
    const number = parseWholeNumber(text);
    if (number !== undefined && number >= min && (max === undefined || number <= max)) return number;
    throw new InvalidArgumentError(`Use a whole number from ${min}${max === undefined ? '' : ` to ${max}`}.`);
  };
}

/** A parser of some words, separated by commas. */
export function wordsArgument(words: readonly string[]): (text: string) => string[] {
  return (text) => {
    const given = parseWords(text, words);
    if (given) return given;
    throw new InvalidArgumentError(`It must be one or more of ${words.join()}.`);
  };
}

function fieldOf(input: Type<object>, name: string): Field {
  const field: unknown = Reflect.getMetadata(DECORATORS.API_MODEL_PROPERTIES, input.prototype as object, name);
  if (typeof field !== 'object' || field === null) throw new Error(`${input.name} has no field ${name}.`);
  return field;
}

const describe = ({ description = '' }: Field): string => description.replaceAll('`', '');

function valueName(name: string, { type, format }: Field): string {
  if (type === 'integer') return 'count';
  return format ?? VALUES[name] ?? name;
}

/** Lets an option or an argument accept what the field does. A text that can be null has the word `none` for it. */
function parsed<Input extends Option | Argument>(
  input: Input,
  { type, nullable, minimum = 0, maximum, enum: choices, items }: Field,
  nullWord = nullable === true && type !== 'integer' ? 'none' : undefined,
): Input {
  if (choices) input.choices(choices);
  let parse = (text: string): unknown => text;
  if (type === 'integer') parse = wholeNumberArgument(minimum, maximum);
  else if (items?.enum) parse = wordsArgument(items.enum);
  else if (nullWord === undefined) return input;
  const none = input instanceof Option ? NONE : null;
  input.argParser((text: string) => (text === nullWord ? none : parse(text)));
  return input;
}
