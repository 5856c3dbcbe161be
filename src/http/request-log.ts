import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { legiblePath } from './request-paths.js';
import { requestContext } from './request-context.js';
import type { Redactor } from '../observability/logging/redaction.js';

/** Requested every few seconds by probes and scrapers. */
const FREQUENT_PATHS = /^\/(?:health\/|metrics$)/;
const PATH_LENGTH_MAX = 300;

/**
 * Middleware, after the one that creates the request context: logs one line per request when its response has ended, without
 * headers and query, which can contain a key.
 */
export function logRequests(logger: Logger, redact: Redactor) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const { requestId, startedAtMs, log } = requestContext(request);
    const { method, path } = request;
    response.once('close', () => {
      const { statusCode: status } = response;
      logger[status >= 500 ? 'error' : FREQUENT_PATHS.test(path) ? 'debug' : 'info']({
        event: 'request',
        requestId,
        method,
        // Redacted before it is truncated: a truncated token would not be recognized.
        path: redact(legiblePath(path)).slice(0, PATH_LENGTH_MAX),
        status,
        ms: Math.round((performance.now() - startedAtMs) * 10) / 10,
        // The field's released name.
        ...(!response.writableFinished && { left: true }),
        ...log,
      });
    });
    next();
  };
}
