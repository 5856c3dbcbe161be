import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { legiblePath } from './request-paths.js';
import { requestContext } from './request-context.js';
import type { Redactor } from '../observability/logging/redaction.js';
import { RefusalSampler } from '../observability/logging/refusal-sampler.js';

/** Requested every few seconds by probes and scrapers. */
const FREQUENT_PATHS = /^\/(?:health\/|metrics$)/;
const PATH_LENGTH_MAX = 300;
const TOO_MANY_REQUESTS = 429;

/**
 * Logs one line per request when its response has ended, without headers and query, which can contain a key. Requests
 * refused before authentication and requests over a limit are sampled, because clients decide how many there are.
 */
export class RequestLog {
  private readonly refusals: RefusalSampler;

  constructor(
    private readonly logger: Logger,
    private readonly redact: Redactor,
  ) {
    this.refusals = new RefusalSampler((counts) => logger.info({ event: 'refusals_not_logged', counts }));
  }

  /** Middleware, after the one that creates the request context. */
  readonly log = (request: Request, response: Response, next: NextFunction): void => {
    const { requestId, startedAtMs, log } = requestContext(request);
    const { method, path } = request;
    response.once('close', () => {
      const { statusCode: status } = response;
      if (
        isSampled(status, log) &&
        !this.refusals.allows(typeof log['code'] === 'string' ? log['code'] : String(status))
      )
        return;
      const disconnected = !response.writableFinished;
      this.logger[status >= 500 ? 'error' : FREQUENT_PATHS.test(path) ? 'debug' : 'info']({
        event: 'request',
        requestId,
        method,
        // Redacted before it is truncated: a truncated token would not be recognized.
        path: this.redact(legiblePath(path)).slice(0, PATH_LENGTH_MAX),
        status,
        ms: Math.round((performance.now() - startedAtMs) * 10) / 10,
        // The field's released name.
        ...(disconnected && { left: true }),
        ...log,
      });
    });
    next();
  };

  /** Reports the lines that were omitted so far. */
  flush(): void {
    this.refusals.flush();
  }
}

function isSampled(status: number, log: Readonly<Record<string, unknown>>): boolean {
  if (status === TOO_MANY_REQUESTS) return true;
  return status >= 400 && status < 500 && log['organizationId'] === undefined && log['admin'] === undefined;
}
