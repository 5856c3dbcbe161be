import { ValidationPipe, type ArgumentMetadata, type ValidationError } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';
import { InvalidRequestError, type InvalidField } from '../domain/errors.js';

/** The query of an operation that takes none. */
export class NoParameters {}

/** Checks parameters against their class; what the class does not name is refused, not ignored. */
export class StrictValidationPipe extends ValidationPipe {
  constructor() {
    super({
      transform: true,
      whitelist: true,
      forbidNonWhitelisted: true,
      exceptionFactory: (errors) => new InvalidRequestError(errors.flatMap(invalidFields)),
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (metadata.type !== 'query' || !metadata.metatype || typeof value !== 'object' || value === null) {
      return super.transform(value, metadata);
    }
    // Told apart here and not by the validator, which overlooks names that every object has, such as __proto__.
    const known = propertiesOf(metadata.metatype);
    const unknown = Object.keys(value).filter((name) => !known.has(name));
    const rest = Object.fromEntries(Object.entries(value).filter(([name]) => known.has(name)));
    const faults = unknown.map(unknownParameter);
    const checked: unknown = await Promise.resolve(super.transform(rest, metadata)).catch((error: unknown) => {
      throw error instanceof InvalidRequestError ? new InvalidRequestError([...error.details, ...faults]) : error;
    });
    if (faults.length > 0) throw new InvalidRequestError(faults);
    return checked;
  }
}

function propertiesOf(metatype: NonNullable<ArgumentMetadata['metatype']>): Set<string> {
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false);
  return new Set(rules.map((rule) => rule.propertyName));
}

function invalidFields({ property, constraints = {} }: ValidationError): InvalidField[] {
  return Object.entries(constraints).map(([rule, message]) =>
    rule === 'whitelistValidation' ? unknownParameter(property) : { field: property, message },
  );
}

/** A name that could be one of a parameter; anything else is a caller's mistake, perhaps a key, and is not repeated. */
const PLAIN_NAME = /^[\w.-]{1,40}$/;

/** `limit[]=1` is `limit` written in a way that is not understood, so that is the field named. */
function unknownParameter(name: string): InvalidField {
  const field = name.replace(/\[.*$/s, '') || name;
  if (!PLAIN_NAME.test(field))
    return { field: 'query', message: 'The query has a parameter that this operation does not have.' };
  return { field, message: `${JSON.stringify(name.slice(0, 80))} is not a parameter of this operation.` };
}
