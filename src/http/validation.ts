import { ValidationPipe, type ArgumentMetadata, type ValidationError } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';
import { InvalidRequestError, type InvalidField } from '../domain/errors.js';
import { isNestedDeeper, NESTING_LEVELS_MAX } from './json-depth.js';
import { createRedactor, type Redactor } from './redaction.js';

const NAME_SHOWN_MAX = 80;

/** The query or the body of an operation that takes none. */
export class NoParameters {}

/** Checks parameters against their class; what the class does not name is refused, not ignored. */
export class StrictValidationPipe extends ValidationPipe {
  constructor(private readonly redact: Redactor = createRedactor()) {
    super({
      transform: true,
      whitelist: true,
      forbidNonWhitelisted: true,
      exceptionFactory: (errors) => new InvalidRequestError(errors.flatMap((error) => invalidFields(error, redact))),
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const checked = metadata.type === 'query' || metadata.type === 'body';
    if (!checked || !metadata.metatype || typeof value !== 'object' || value === null) {
      return super.transform(value, metadata);
    }
    // Told apart here and not by the validator, which overlooks names that every object has, such as __proto__.
    const known = propertiesOf(metadata.metatype);
    const unknown = Object.keys(value).filter((name) => !known.has(name));
    const rest = Object.fromEntries(Object.entries(value).filter(([name]) => known.has(name)));
    const faults = unknown.map((name) => unknownParameter(name, this.redact));
    const deep = Object.entries(rest).flatMap(([field, given]) =>
      isNestedDeeper(given, NESTING_LEVELS_MAX) ? [field] : [],
    );
    if (deep.length > 0) throw new InvalidRequestError([...deep.map(nestedTooDeep), ...faults]);
    const valid: unknown = await Promise.resolve(super.transform(rest, metadata)).catch((error: unknown) => {
      throw error instanceof InvalidRequestError ? new InvalidRequestError([...error.details, ...faults]) : error;
    });
    if (faults.length > 0) throw new InvalidRequestError(faults);
    return valid;
  }
}

function propertiesOf(metatype: NonNullable<ArgumentMetadata['metatype']>): Set<string> {
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false);
  return new Set(rules.map((rule) => rule.propertyName));
}

function invalidFields({ property, constraints = {} }: ValidationError, redact: Redactor): InvalidField[] {
  return Object.entries(constraints).map(([rule, message]) =>
    rule === 'whitelistValidation' ? unknownParameter(property, redact) : { field: property, message },
  );
}

function nestedTooDeep(field: string): InvalidField {
  return { field, message: `${field} must not be nested more than ${NESTING_LEVELS_MAX} levels deep.` };
}

/**
 * `limit[]=1` is `limit` written in a way that is not understood, so that is the field named. A key or a
 * token that was sent in the place of a name is not repeated.
 */
function unknownParameter(name: string, redact: Redactor): InvalidField {
  const shown = redact(name).slice(0, NAME_SHOWN_MAX);
  const field = shown.split('[', 1)[0] || shown;
  return { field, message: `${JSON.stringify(shown)} is not a parameter of this operation.` };
}
