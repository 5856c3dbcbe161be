import type { NextFunction, Request, Response } from 'express';
import { withoutKeys } from '../organizations/api-key.js';
import { activeTracer, type ServerSpan } from '../tracing/tracer.js';
import { requestContext } from './request-context.js';
import { onResponseEnd } from './response-end.js';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
/** Asked every few seconds by machines; a trace of each would drown the others. */
const UNTRACED = /^\/(health\/|metrics$)/;

/** Middleware: opens the span of a request, within which everything is done for it. Neither query nor headers are in it. */
export function traceRequests(request: Request, response: Response, next: NextFunction): void {
  const tracer = activeTracer();
  if (!tracer || UNTRACED.test(request.path)) {
    next();
    return;
  }
  const method = METHODS.has(request.method) ? request.method : '_OTHER';
  const attributes = {
    'http.request.method': method,
    'url.scheme': request.protocol,
    'url.path': withoutKeys(readable(request.path)).slice(0, 300),
    'network.protocol.version': request.httpVersion,
  };
  tracer.serve(method === '_OTHER' ? 'HTTP' : method, request.headers, attributes, (span) => {
    // The end of an answer is told outside of its trace, and so is not where its line in the log would find it.
    const { log } = requestContext(request);
    log['traceId'] = tracer.traceId();
    onResponseEnd(response, () => endSpan(span, method, request, response, log['code']));
    next();
  });
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

function readable(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
