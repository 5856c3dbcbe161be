import { applyDecorators } from '@nestjs/common';
import { ApiHeader } from '@nestjs/swagger';
import type { Request } from 'express';
import { ERRORS } from '../../domain/error-codes.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { ApiErrors } from '../errors/error-docs.js';
import { hasNoApiKey } from './field.js';

const IDEMPOTENCY_KEY = 'Idempotency-Key';
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;
export const IDEMPOTENCY_KEY_CHARACTERS = /^[ -~]+$/;

/** The idempotency key was used for another request. */
export class IdempotencyConflictError extends DomainError {
  constructor(message: string = ERRORS.idempotency_conflict.message) {
    super('idempotency_conflict', message);
  }
}

/**
 * The `Idempotency-Key` of a request; undefined when it has none. It is stored, so it must not contain an API key.
 *
 * @throws InvalidRequestError
 */
export function idempotencyKey(request: Request): string | undefined {
  const values = request.headersDistinct[IDEMPOTENCY_KEY.toLowerCase()];
  if (values === undefined) return undefined;
  const [key = ''] = values;
  const isValid =
    values.length === 1 && key.length <= IDEMPOTENCY_KEY_LENGTH_MAX && IDEMPOTENCY_KEY_CHARACTERS.test(key);
  if (isValid && hasNoApiKey(key)) return key;
  const message = isValid
    ? `${IDEMPOTENCY_KEY} must not contain an API key.`
    : `${IDEMPOTENCY_KEY} must have 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} printable ASCII characters, given once.`;
  throw invalidField(IDEMPOTENCY_KEY, message);
}

/**
 * Documents the header that makes the creation of something repeatable, and the refusal of another body.
 *
 * @param created what is created
 * @param until how long requests with the key return it
 */
export function ApiIdempotencyKey(created: string, until = `stored as long as the ${created}`): MethodDecorator {
  return applyDecorators(
    ApiErrors(new IdempotencyConflictError()),
    ApiHeader({
      name: IDEMPOTENCY_KEY,
      required: false,
      description:
        `Makes the request safe to repeat: the same key and body return the ${created} that the first request has created, another body ` +
        `is 409 \`idempotency_conflict\`. Printable ASCII characters, such as a UUID; ${until}, for the organization.`,
      schema: { type: 'string', minLength: 1, maxLength: IDEMPOTENCY_KEY_LENGTH_MAX },
    }),
  );
}
