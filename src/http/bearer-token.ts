import { createHash, timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { InvalidRequestError } from '../domain/errors.js';

const BEARER = /^Bearer +(\S+) *$/i;

/** What a request sends as `Authorization: Bearer …`; undefined when it sends none. */
export function bearerToken(request: Request): string | undefined {
  return BEARER.exec(request.headers.authorization ?? '')?.[1];
}

/**
 * Middleware: refuses a request with several `Authorization` headers, of which Node would take the first and a proxy in
 * front perhaps the last. It comes before authentication, since who is calling cannot be said.
 */
export function rejectRepeatedAuthorization(request: Request, _response: Response, next: NextFunction): void {
  const repeated = (request.headersDistinct['authorization']?.length ?? 0) > 1;
  const message = 'The header Authorization must be given at most once.';
  next(repeated ? new InvalidRequestError([{ field: 'Authorization', message }]) : undefined);
}

/** A token that an operator has set, compared in a time that tells nothing of how far a guess was right. */
export class SecretToken {
  private readonly expected: Buffer;

  constructor(token: string) {
    this.expected = digest(token);
  }

  /** Whether a request brings this token. */
  isIn(request: Request): boolean {
    const given = bearerToken(request);
    return given !== undefined && timingSafeEqual(digest(given), this.expected);
  }
}

/** Of one length, whatever the token is. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
