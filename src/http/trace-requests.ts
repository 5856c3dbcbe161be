import type { NextFunction, Request, Response } from 'express';
import { activeTracer, type ServerSpan } from '../observability/tracing/tracer.js';
import { legiblePath } from './legible-path.js';
import { requestContext } from './request-context.js';
import type { Redactor } from './redaction.js';
import { onResponseEnd } from './response-end.js';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
/** Asked every few seconds by machines; a trace of each would drown the others. */
const UNTRACED = /^\/(health\/|metrics$)/;
const PATH_SHOWN_MAX = 300;

/** Middleware: opens the span of a request, within which everything is done for it. Neither query nor headers are in it. */
export function traceRequests(redact: Redactor) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const tracer = activeTracer();
    if (!tracer || UNTRACED.test(request.path)) {
      next();
      return;
    }
    const method = METHODS.has(request.method) ? request.method : '_OTHER';
    const attributes = {
      'http.request.method': method,
      'url.scheme': request.protocol,
      'url.path': redact(legiblePath(request.path)).slice(0, PATH_SHOWN_MAX),
      'network.protocol.version': request.httpVersion,
    };
    tracer.serve(method === '_OTHER' ? 'HTTP' : method, request.headers, attributes, (span) => {
      // 'close' fires outside the trace context, so the id is read here for the line in the log.
      const { log } = requestContext(request);
      log['traceId'] = tracer.traceId();
      onResponseEnd(response, () => endSpan(span, method, request, response, log['code']));
      next();
    });
  };
}

function endSpan(span: ServerSpan, method: string, request: Request, response: Response, code: unknown): void {
  const route = routeOf(request);
  if (route !== undefined) {
    span.rename(`${method} ${route}`);
    span.setAttributes({ 'http.route': route });
  }
  const { statusCode } = response;
  span.setAttributes({ 'http.response.status_code': statusCode });
  if (statusCode >= 500) span.fail(typeof code === 'string' ? code : String(statusCode));
  else if (!response.writableFinished) span.setAttributes({ 'channel_transcripts.left': true });
  span.end();
}

/** The path of the route that answered, as it is declared; undefined when none did. */
function routeOf(request: Request): string | undefined {
  const route: unknown = request.route;
  const path = typeof route === 'object' && route !== null && 'path' in route ? route.path : undefined;
  return typeof path === 'string' ? path : undefined;
}
