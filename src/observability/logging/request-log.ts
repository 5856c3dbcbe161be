import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { legiblePath } from '../../http/legible-path.js';
import { requestContext } from '../../http/request-context.js';
import type { Redactor } from '../../http/redaction.js';
import { RefusalSampler } from './refusal-sampler.js';
import { onResponseEnd } from '../../http/response-end.js';

/** Probes and metrics are asked for every few seconds, by machines. */
const FREQUENT_PATHS = /^\/(?:health\/|metrics$)/;
const PATH_SHOWN_MAX = 300;
const TOO_MANY_REQUESTS = 429;

/**
 * One line a request when its response has ended. Neither headers nor the query are logged: they can hold a key. Of
 * requests that were refused before anybody was known to make them, and of those past a limit, only a sample is logged:
 * who sends them decides how many there are.
 */
export class RequestLog {
  private readonly refusals: RefusalSampler;

  constructor(
    private readonly logger: Logger,
    private readonly redact: Redactor,
  ) {
    this.refusals = new RefusalSampler((counts) => logger.info({ event: 'refusals_not_logged', counts }));
  }

  /** Middleware, right after the one that gives a request its context. */
  readonly log = (request: Request, response: Response, next: NextFunction): void => {
    const { requestId, startedAtMs, log } = requestContext(request);
    const { method, path } = request;
    onResponseEnd(response, () => {
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
        // Masked before it is cut: half of a token is no token that could be recognised, and still half of one.
        path: this.redact(legiblePath(path)).slice(0, PATH_SHOWN_MAX),
        status,
        ms: Math.round((performance.now() - startedAtMs) * 10) / 10,
        ...(disconnected && { left: true }),
        ...log,
      });
    });
    next();
  };

  /** Reports what was left out of the log until now. */
  flush(): void {
    this.refusals.flush();
  }
}

function isSampled(status: number, log: Readonly<Record<string, unknown>>): boolean {
  if (status === TOO_MANY_REQUESTS) return true;
  return status >= 400 && status < 500 && log['organizationId'] === undefined && log['admin'] === undefined;
}
