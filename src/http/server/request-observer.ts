import { Injectable } from '@nestjs/common';
import type { Span } from '@opentelemetry/api';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { Counter, Histogram, Registry } from 'prom-client';
import type { Redactor } from '../../observability/logging/logger.js';
import { activeTraceId, failSpan, inServerSpan } from '../../observability/tracing/tracer.js';
import { requestContext } from './request-context.js';
import { legiblePath } from './request-paths.js';
import { Routes } from '../routes/routes.js';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const PATH_LENGTH_MAX = 300;
/** The documentation, which no controller serves. */
const DOCS = /^\/docs(?:\/|-json$|$)/;

/** Seconds. A cached call takes milliseconds; one that fetches a hundred videos takes up to its deadline. */
const BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60];

/** A request as its log line and its span show it. */
interface Observed {
  method: string;
  path: string;
  /** The level of the log line unless the request fails. */
  level: 'debug' | 'info';
  /** Undefined for a request that is not traced. */
  span: Span | undefined;
  as: 'service' | 'command';
}

/** Logs, counts and traces the requests, without their headers and query, which can contain a key. */
@Injectable()
export class RequestObserver {
  private readonly requests: Counter<'method' | 'route' | 'status' | 'code'>;
  private readonly seconds: Histogram<'method' | 'route' | 'status'>;
  private readonly unfinished: Counter<'route'>;

  constructor(
    private readonly routes: Routes,
    registry: Registry,
  ) {
    const registers = [registry];
    this.requests = new Counter({
      name: 'ct_http_requests_total',
      help: 'Completed requests, by route, status and error code.',
      labelNames: ['method', 'route', 'status', 'code'],
      registers,
    });
    this.seconds = new Histogram({
      name: 'ct_http_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its response.',
      labelNames: ['method', 'route', 'status'],
      buckets: BUCKETS_SECONDS,
      registers,
    });
    this.unfinished = new Counter({
      name: 'ct_http_responses_unfinished_total',
      help: 'Responses that ended early because the client disconnected or the connection was destroyed. Included in requests.',
      labelNames: ['route'],
      registers,
    });
  }

  /**
   * Middleware, after the one that creates the request context.
   *
   * @param as a command states the failures of its calls by itself; only bugs are errors in its log
   */
  observe(logger: Logger, redact: Redactor, as: 'service' | 'command' = 'service') {
    return (request: Request, response: Response, next: NextFunction): void => {
      const { method, headers, protocol } = request;
      // Redacted before it is truncated: a truncated token would not be recognized.
      const path = redact(legiblePath(request.path)).slice(0, PATH_LENGTH_MAX);
      const level = this.routes.isProbe(request.path) ? 'debug' : 'info';
      const start = (span?: Span): void => {
        const observed: Observed = { method, path, level, span, as };
        response.once('close', () => this.record(logger, observed, request, response));
        next();
      };
      if (level === 'debug') {
        start();
        return;
      }
      const attributes = {
        'http.request.method': METHODS.has(method) ? method : '_OTHER',
        'url.scheme': protocol,
        'url.path': path,
        'network.protocol.version': request.httpVersion,
      };
      inServerSpan(METHODS.has(method) ? method : 'HTTP', headers, attributes, (span) => {
        // 'close' fires outside the trace context, so the id is read here for the line in the log.
        requestContext(request).log['traceId'] = activeTraceId();
        start(span);
      });
    };
  }

  private record(logger: Logger, observed: Observed, request: Request, response: Response): void {
    const { method, path, level, span, as } = observed;
    const { requestId, startedAtMs, log } = requestContext(request);
    const { statusCode: status, writableFinished } = response;
    const durationMs = performance.now() - startedAtMs;
    const code = typeof log['code'] === 'string' ? log['code'] : undefined;
    const facts = { event: 'request', requestId, method, path, status, ms: Math.round(durationMs * 10) / 10 };
    const isError = status >= 500 && (as === 'service' || code === 'internal_error');
    // `left` is the field's released name.
    logger[isError ? 'error' : level]({ ...facts, ...(!writableFinished && { left: true }), ...log });
    const declared = declaredRoute(request);
    // A path of the OpenAPI document, `/docs` or `other`: never text from a caller.
    const route = DOCS.test(path) ? '/docs' : (declared?.replace(/[:*](\w+)/g, '{$1}') ?? 'other');
    // Scrapes of the metrics are no traffic.
    if (level !== 'debug' || this.routes.audience(request.path) !== 'internal') {
      const labels = { method: METHODS.has(method) ? method : 'other', route, status };
      this.requests.inc({ ...labels, code: code ?? 'none' });
      this.seconds.observe(labels, durationMs / 1000);
      if (!writableFinished) this.unfinished.inc({ route });
    }
    if (declared !== undefined) span?.updateName(`${method} ${declared}`).setAttribute('http.route', declared);
    span?.setAttribute('http.response.status_code', status);
    if (span && status >= 500) failSpan(span, code ?? String(status));
    else if (!writableFinished) span?.setAttribute('channel_transcripts.left', true);
    span?.end();
  }
}

/** The path of the matched route as it is declared; undefined when no route matched. */
function declaredRoute({ route }: Request): string | undefined {
  const declared: unknown = route;
  const path = typeof declared === 'object' && declared !== null && 'path' in declared ? declared.path : undefined;
  return typeof path === 'string' ? path : undefined;
}
