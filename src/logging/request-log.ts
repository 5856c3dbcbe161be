import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { requestContext } from '../http/request-context.js';
import { onResponseEnd } from '../http/response-end.js';

/** Probes and metrics are asked for every few seconds, by machines. */
const OFTEN_ASKED = /^\/(?:health\/|metrics\/?$)/i;

/** One line a request when its response has ended. Neither headers nor the query are logged: they can hold a key. */
export function logRequests(logger: Logger) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const { requestId, startedAtMs, log } = requestContext(request);
    const { method } = request;
    const path = readable(request.path);
    onResponseEnd(response, () => {
      const left = !response.writableFinished;
      logger[response.statusCode >= 500 ? 'error' : OFTEN_ASKED.test(path) ? 'debug' : 'info']({
        event: 'request',
        requestId,
        method,
        path: path.slice(0, 300),
        status: response.statusCode,
        ms: Math.round((performance.now() - startedAtMs) * 10) / 10,
        ...(left && { left }),
        ...log,
      });
    });
    next();
  };
}

/** Decoded, because a key in it is recognised by its plain characters only. */
function readable(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
