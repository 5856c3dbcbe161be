import { applyDecorators, ValidationPipe, type ArgumentMetadata, type ValidationError } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { getMetadataStorage, IsString, Min, ValidateBy, ValidateIf } from 'class-validator';
import { InvalidRequestError, type InvalidField } from '../../domain/errors.js';
import { redactApiKeys } from '../../domain/api-key-text.js';
import { unknownParameterMessage, unknownParameters } from '../../domain/unknown-parameter.js';
import { createRedactor, type Redactor } from '../../observability/logging/logger.js';
import { legiblePath } from '../server/request-paths.js';

const NAME_SHOWN_MAX = 80;
/** Far above any value of the interface, far below what exhausts the stack of the validator. */
const NESTING_LEVELS_MAX = 32;
/** The rule that class-validator reports a property under that the class does not declare. */
const WHITELIST_RULE = 'whitelistValidation';

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

/** Skips validation of an absent value. IsOptional would skip null as well. */
export function Optional(): PropertyDecorator {
  return ValidateIf((_body, value) => value !== undefined);
}

export const LIMIT_INVALID = 'limit must be an integer of at least 1 in decimal digits, given once.';

export const AFTER_INVALID = 'after must be the "next" value of a page, given once.';

export const PAGE_SIZE_DEFAULT = 25;
export const PAGE_SIZE_MAX = 100;

/** The query parameter `limit` of a list. Values above the maximum count as that. */
export function PageLimit(defaultSize = PAGE_SIZE_DEFAULT): PropertyDecorator {
  return applyDecorators(
    ApiPropertyOptional({
      type: 'integer',
      minimum: 1,
      default: defaultSize,
      description: `The maximum number of entries of the list to return. Values above ${PAGE_SIZE_MAX} are treated as ${PAGE_SIZE_MAX}.`,
    }),
    Transform(({ value }: { value: unknown }) => Math.min(digitsOf(value), PAGE_SIZE_MAX)),
    Min(1, { message: LIMIT_INVALID }),
  );
}

/** The query parameter `after` of a list. */
export function PageAfter(): PropertyDecorator {
  return applyDecorators(
    ApiPropertyOptional({
      type: 'string',
      description: 'The `next` value of the previous page. By default the first page is returned.',
    }),
    Optional(),
    IsString({ message: AFTER_INVALID }),
  );
}

/** The query of a list in pages. */
export class PageQueryDto {
  @PageLimit(10)
  limit: number = PAGE_SIZE_DEFAULT;

  @PageAfter()
  after?: string;
}

/** @returns NaN, which fails validation, unless the value is a string of decimal digits */
export function digitsOf(value: unknown): number {
  return typeof value === 'string' && /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
}

/** Whether a text that is stored or displayed contains no API key, which must be neither, also not percent-encoded. */
export function hasNoApiKey(text: string): boolean {
  const legible = legiblePath(text);
  return redactApiKeys(legible) === legible;
}

/** Refuses a text that contains an API key. */
export function HasNoApiKey(): PropertyDecorator {
  return ValidateBy({
    name: 'hasNoApiKey',
    validator: {
      validate: (value: unknown) => typeof value !== 'string' || hasNoApiKey(value),
      defaultMessage: (argument) => `${argument?.property} must not contain an API key.`,
    },
  });
}

/** An optional integer. One rule instead of IsInt, Min and Max, so that a wrong value is reported once. */
export function OptionalInteger(
  [minimum, maximum]: [number, number],
  { nullable = false, ...docs }: { description: string; default?: number; nullable?: boolean },
): PropertyDecorator {
  const isValid = (value: unknown): boolean =>
    (nullable && value === null) ||
    (typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum);
  const range = `${nullable ? 'null or ' : ''}an integer from ${minimum} to ${maximum}`;
  return applyDecorators(
    ApiPropertyOptional({ type: 'integer', ...(nullable && { nullable }), minimum, maximum, ...docs }),
    Optional(),
    ValidateBy({
      name: 'isIntegerBetween',
      validator: { validate: isValid, defaultMessage: (argument) => `${argument?.property} must be ${range}.` },
    }),
  );
}

/** Validates query parameters and body fields against their class. Undeclared ones are errors, not ignored. */
export class StrictValidationPipe extends ValidationPipe {
  constructor(private readonly redact: Redactor = createRedactor()) {
    super({
      transform: true,
      whitelist: true,
      forbidNonWhitelisted: true,
      stopAtFirstError: true,
      // Its class says which parameters exist.
      validationError: { target: true },
      exceptionFactory: (errors) => new InvalidRequestError(invalidFields(errors, redact)),
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (metadata.type === 'custom') return value;
    // The whitelist does not detect names that every object inherits, such as __proto__ and constructor.
    const inherited = isObjectOrArray(value) ? Object.keys(value).filter((name) => name in Object.prototype) : [];
    if (inherited.length > 0) {
      const valid = parametersOf(metadata.metatype && new metadata.metatype());
      throw new InvalidRequestError(unknownParameters(inherited, (name) => unknownParameter(name, valid, this.redact)));
    }
    // class-transformer recurses into every field.
    if (isNestedDeeper(value, NESTING_LEVELS_MAX)) throw new InvalidRequestError([NESTED_TOO_DEEP]);
    return super.transform(value, metadata);
  }
}

const NESTED_TOO_DEEP: InvalidField = {
  field: 'body',
  message: `The body must not be nested more than ${NESTING_LEVELS_MAX} levels deep.`,
};

/** Invalid parameters first, then unknown ones. */
function invalidFields(errors: readonly ValidationError[], redact: Redactor): InvalidField[] {
  const unknown = errors.filter(isUnknown);
  const valid = parametersOf(unknown[0]?.target);
  return [
    ...errors
      .filter((error) => !isUnknown(error))
      .flatMap(({ property: field, constraints = {} }) =>
        Object.values(constraints).map((message) => ({ field, message })),
      ),
    ...unknownParameters(
      unknown.map(({ property }) => property),
      (name) => unknownParameter(name, valid, redact),
    ),
  ];
}

function isUnknown({ constraints = {} }: ValidationError): boolean {
  return WHITELIST_RULE in constraints;
}

/** The names that the class of an object declares. */
function parametersOf(target: unknown): string[] {
  if (!isObjectOrArray(target)) return [];
  const rules = getMetadataStorage().getTargetValidationMetadatas(target.constructor, '', false, false);
  return [...new Set(rules.map(({ propertyName }) => propertyName))];
}

/** The field of `limit[]=1` is `limit`, as the caller meant it. The name is redacted: it can be a misplaced key. */
function unknownParameter(name: string, valid: readonly string[], redact: Redactor): InvalidField {
  const shown = redact(name).slice(0, NAME_SHOWN_MAX);
  const field = shown.split('[', 1)[0] || shown;
  return { field, message: unknownParameterMessage(shown, 'operation', valid) };
}
