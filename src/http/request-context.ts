import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { createRedactor, type Redactor } from './redaction.js';

/** What is known of a request while it runs; `log` is added to its line in the log and never holds a secret. */
export interface RequestContext {
  readonly requestId: string;
  readonly startedAtMs: number;
  readonly log: Record<string, unknown>;
}

const contexts = new WeakMap<object, RequestContext>();

/** A caller's own id is echoed and kept when it is short, made of harmless characters, and holds no secret by mistake. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** The context of a request that has passed `assignRequestContext`, which is the first thing that any request meets. */
export function requestContext(request: object): RequestContext {
  const context = contexts.get(request);
  if (!context) throw new Error('The request has no context: assignRequestContext must come first.');
  return context;
}

/** First middleware: gives the request an id and the response the headers that every response carries. */
export function assignRequestContext(redact: Redactor) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const requestId = requestIdFrom(request.headers['x-request-id'], redact);
    contexts.set(request, { requestId, startedAtMs: performance.now(), log: {} });
    response.setHeader('X-Request-Id', requestId);
    response.setHeader('Cache-Control', 'private, no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    next();
  };
}

/** The id that a caller gave its call, if it is sane; otherwise a new one. */
export function requestIdFrom(given: unknown, redact: Redactor = createRedactor()): string {
  const isSane = typeof given === 'string' && SANE_REQUEST_ID.test(given) && redact(given) === given;
  return isSane ? given : randomUUID();
}
