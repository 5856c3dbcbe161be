import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  Logger,
  NotFoundException,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { Environment } from '../../config/environment.js';
import { isDatabaseUnavailable } from '../../database/database-errors.js';
import {
  DatabaseUnavailableError,
  DomainError,
  InternalError,
  invalidField,
  PlanLimitExceededError,
} from '../../domain/errors.js';
import { MethodNotAllowedError, RouteNotFoundError } from './http-errors.js';
import { RepeatedLines } from '../../observability/logging/logger.js';
import { challengeOf } from './challenge.js';
import { DOCS_PAGE, errorBody } from './error-body.js';
import { setQuotaHeaders } from '../routes/limit-headers.js';
import { requestContext, type RequestContext } from '../server/request-context.js';
import { Routes } from '../routes/routes.js';
import { meantName } from '../../domain/unknown-parameter.js';

/** Seconds after which a caller may try again when the database is unavailable. */
const DATABASE_RETRY_AFTER_SECONDS = 5;

const logger = new Logger('UnexpectedError');
const databaseAway = new RepeatedLines((line) => logger.error(line));

/** Turns what is not a domain error into one: the framework's own refusals, an unavailable database, and bugs, which are logged. */
export function asDomainError(error: unknown, requestId: string): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof HttpException && error.getStatus() < 500) return invalidField('request', error.message);
  if (isDatabaseUnavailable(error)) {
    databaseAway.write('database_away', { event: 'database_away', requestId, cause: causeText(error) });
    return new DatabaseUnavailableError(DATABASE_RETRY_AFTER_SECONDS, error);
  }
  logger.error({ event: 'bug', requestId, stack: error instanceof Error ? error.stack : String(error) });
  return new InternalError(error);
}

/** The cause of an error as the log shows it. */
export function causeText(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}

/** Refusals for what the caller is or does: an operator looks for its address. */
const REFUSALS_OF_CALLERS: readonly number[] = [401, 403, 429];

/** Adds an error to the log line of its call. */
export function logError({ log, address }: RequestContext, error: DomainError): void {
  log['code'] = error.code;
  if (error.cause !== undefined) log['cause'] = causeText(error.cause);
  if (REFUSALS_OF_CALLERS.includes(error.status)) log['address'] = address;
}

/** Maps every error to its status, headers and the error envelope. */
@Catch()
export class ErrorFilter implements ExceptionFilter<unknown> {
  constructor(
    private readonly routes: Routes,
    private readonly environment: Environment,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    const context = requestContext(request);
    const error =
      thrown instanceof NotFoundException ? this.unmatched(request) : asDomainError(thrown, context.requestId);
    const { status } = error;
    logError(context, error);
    // A truncated body must not look complete, so the connection is destroyed.
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const challenge = challengeOf(request, error, this.environment);
    if (challenge !== undefined) response.setHeader('WWW-Authenticate', challenge);
    if (error instanceof MethodNotAllowedError) response.setHeader('Allow', error.allowed);
    if (error instanceof PlanLimitExceededError) setQuotaHeaders(response, error.quota);
    if (error.retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(error.retryAfterSeconds));
    // A static file that failed to send has already set its type.
    response.type('application/json');
    response.status(status).json(errorBody(error, context.requestId));
  }

  /** Nest reports that no route matches. */
  private unmatched({ path }: Request): MethodNotAllowedError | RouteNotFoundError {
    const methods = this.routes.allowedMethods(path);
    if (methods.length > 0) return new MethodNotAllowedError(methods.join(', '));
    return new RouteNotFoundError(meantPath(path, [...this.routes.all.map((route) => route.path), DOCS_PAGE]));
  }
}

/** A path with more segments means none by mistake. A URL that is sent raw as an ID has about six. */
const SEGMENTS_MAX = 12;
const SEGMENT_LENGTH_MAX = 40;

/**
 * The path that an unknown one means: misspelled, in another letter case, behind a prefix such as `/v1`, or with a slash at the end.
 *
 * @param paths as in the OpenAPI document, such as `/jobs/{id}`
 */
export function meantPath(path: string, paths: readonly string[]): string | undefined {
  const sent = path.split('/').filter(Boolean);
  if (sent.length > SEGMENTS_MAX) return undefined;
  const segments = sent.map((segment) => segment.slice(0, SEGMENT_LENGTH_MAX));
  const [best] = paths
    .flatMap((one) => scoreOf(segments, one.split('/').slice(1)) ?? [])
    .sort((one, other) => other.names - one.names || one.first - other.first || one.difference - other.difference);
  return best && `/${best.parts.join('/')}`;
}

/** How well segments fit a path, whose names they must have in this order. */
function scoreOf(segments: readonly string[], parts: readonly string[]) {
  const names = parts.filter((part) => !part.startsWith('{'));
  let [first, next] = [Infinity, 0];
  for (const name of names) {
    const found = segments.findIndex((one, index) => index >= next && (one === name || meantName(one, [name])));
    if (found < 0) return undefined;
    first = Math.min(first, found);
    next = found + 1;
  }
  return { parts, names: names.length, first, difference: Math.abs(segments.length - first - parts.length) };
}
