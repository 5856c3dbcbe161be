import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';

const BEARER = /^Bearer +(\S+) *$/i;

/** What a request sends as `Authorization: Bearer …`; undefined when it sends none. */
export function bearerToken(request: Request): string | undefined {
  return BEARER.exec(request.headers.authorization ?? '')?.[1];
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
