import type { Request } from 'express';

const BEARER = /^Bearer +(\S+) *$/i;

/** What a request sends as `Authorization: Bearer …`; undefined when it sends none. */
export function bearerToken(request: Request): string | undefined {
  return BEARER.exec(request.headers.authorization ?? '')?.[1];
}
