import type { Span } from '@opentelemetry/api';
import type { NextFunction, Request, Response } from 'express';
import { activeTraceId, failSpan, inServerSpan } from '../observability/tracing/tracer.js';
import { declaredRoute, legiblePath } from './request-paths.js';
import { requestContext } from './request-context.js';
import type { Redactor } from '../observability/logging/redaction.js';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
/** Requested every few seconds by probes and scrapers, whose traces would drown the others. */
const UNTRACED = /^\/(health\/|metrics$)/;
const PATH_LENGTH_MAX = 300;

/** Middleware: runs a request in a server span, which contains neither its query nor its headers. */
export function traceRequests(redact: Redactor) {
  return (request: Request, response: Response, next: NextFunction): void => {
    if (UNTRACED.test(request.path)) {
      next();
      return;
    }
    const method = METHODS.has(request.method) ? request.method : '_OTHER';
    const attributes = {
      'http.request.method': method,
      'url.scheme': request.protocol,
      'network.protocol.version': request.httpVersion,
    };
    inServerSpan(method === '_OTHER' ? 'HTTP' : method, request.headers, attributes, (span) => {
      const { log } = requestContext(request);
      // 'close' fires outside the trace context, so the id is read here for the line in the log.
      const traceId = activeTraceId();
      if (traceId !== undefined) log['traceId'] = traceId;
      if (span.isRecording()) {
        span.setAttribute('url.path', redact(legiblePath(request.path)).slice(0, PATH_LENGTH_MAX));
        response.once('close', () => endSpan(span, method, request, response, log['code']));
      }
      next();
    });
  };
}

function endSpan(span: Span, method: string, request: Request, response: Response, code: unknown): void {
  const route = declaredRoute(request);
  if (route !== undefined) span.updateName(`${method} ${route}`).setAttribute('http.route', route);
  const { statusCode } = response;
  span.setAttribute('http.response.status_code', statusCode);
  if (statusCode >= 500) failSpan(span, typeof code === 'string' ? code : String(statusCode));
  else if (!response.writableFinished) span.setAttribute('channel_transcripts.left', true);
  span.end();
}
