import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';

const BEARER = /^Bearer (.*)$/i;

/** What follows `Bearer` in the header `Authorization`: also a text that is no token, whose mistake an error can name. */
export function bearerToken(request: Request): string | undefined {
  return BEARER.exec(request.headers.authorization ?? '')?.[1]?.trim() || undefined;
}

/** A token that the operator has configured, compared in constant time. */
export class SecretToken {
  private readonly expected: Buffer;

  constructor(token: string) {
    this.expected = digest(token);
  }

  matches(given: string | undefined): boolean {
    return given !== undefined && timingSafeEqual(digest(given), this.expected);
  }
}

/** `timingSafeEqual` requires inputs of the same length. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
