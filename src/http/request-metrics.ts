import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { Counter, Histogram, Registry } from 'prom-client';
import { requestContext } from './request-context.js';
import { routeLabel } from './request-paths.js';

/** Seconds. A cached call takes milliseconds; one that fetches a hundred videos takes up to its deadline. */
const BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const OWN_ROUTE = '/metrics';

/** Metrics of the API's requests. The route label is a path of the OpenAPI document, never text from a caller. */
@Injectable()
export class RequestMetrics {
  private readonly requests: Counter<'method' | 'route' | 'status' | 'code'>;
  private readonly seconds: Histogram<'method' | 'route' | 'status'>;
  private readonly unfinished: Counter<'route'>;

  constructor(registry: Registry) {
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

  /** Middleware, after the one that creates the request context; does not count requests for /metrics. */
  readonly countRequests = (request: Request, response: Response, next: NextFunction): void => {
    // Express cuts the path of a file.
    const { path } = request;
    response.once('close', () => {
      const route = routeLabel(request, path);
      if (route !== OWN_ROUTE) this.count(request, response, route);
    });
    next();
  };

  private count(request: Request, response: Response, route: string): void {
    const { startedAtMs, log } = requestContext(request);
    const method = METHODS.has(request.method) ? request.method : 'other';
    const status = String(response.statusCode);
    const code = typeof log['code'] === 'string' ? log['code'] : 'none';
    this.requests.inc({ method, route, status, code });
    this.seconds.observe({ method, route, status }, (performance.now() - startedAtMs) / 1000);
    if (!response.writableFinished) this.unfinished.inc({ route });
  }
}
