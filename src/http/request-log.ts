import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { legiblePath } from './request-paths.js';
import { requestContext } from './request-context.js';
import type { Redactor } from '../observability/logging/redaction.js';

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

const WINDOW_MS = 10_000;
const LINES_MAX = 20;

/** The number of omitted log lines by error code. */
export type NotLogged = Readonly<Record<string, number>>;

/**
 * Bounds the log lines of refused requests: 20 lines per error code in ten seconds, then the number of omitted ones. The
 * metrics count all of them.
 */
export class RefusalSampler {
  private readonly counts = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;

  /** @param report called at the end of each ten seconds in which lines were omitted */
  constructor(private readonly report: (counts: NotLogged) => void) {}

  /** Whether to log a refusal. @param code from a bounded set of codes */
  allows(code: string): boolean {
    const count = (this.counts.get(code) ?? 0) + 1;
    this.counts.set(code, count);
    this.timer ??= setTimeout(() => this.flush(), WINDOW_MS).unref();
    return count <= LINES_MAX;
  }

  /** Reports the omitted lines and starts a new interval. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const omitted = [...this.counts].flatMap(([code, count]) => (count > LINES_MAX ? [[code, count - LINES_MAX]] : []));
    this.counts.clear();
    if (omitted.length > 0) this.report(Object.fromEntries(omitted) as NotLogged);
  }
}
