import { Catch, HttpException, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { isDatabaseAway } from '../database/database-away.js';
import { DomainError, InvalidRequestError, PlanLimitExceededError, ServiceUnavailableError } from '../domain/errors.js';
import { errorBody } from './error-body.js';
import { ERROR_STATUS } from './error-status.js';
import { setQuotaHeaders } from './limit-headers.js';
import { requestContext } from './request-context.js';
import { InternalError, MethodNotAllowedError, RefusedRequestError, RouteNotFoundError } from './routing-errors.js';

const UNAUTHORIZED: number = ERROR_STATUS.unauthorized;

/** Seconds after which a caller may try again when the database was away. */
const DATABASE_RETRY_AFTER_SECONDS = 5;

/** Maps domain errors to their status, headers and the error envelope. */
@Catch(DomainError)
export class DomainErrorFilter implements ExceptionFilter<DomainError> {
  catch(error: DomainError, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    const context = requestContext(request);
    const status: number = error instanceof RefusedRequestError ? error.status : ERROR_STATUS[error.code];
    context.log['code'] = error.code;
    if (error.cause !== undefined) context.log['cause'] = causeText(error.cause);
    // Too late for an answer of its own: a body cut short must not look whole.
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (status === UNAUTHORIZED) response.setHeader('WWW-Authenticate', 'Bearer');
    if (error instanceof MethodNotAllowedError) response.setHeader('Allow', error.allowed);
    if (error instanceof PlanLimitExceededError) setQuotaHeaders(response, error.quota);
    if (error.retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(error.retryAfterSeconds));
    // A file that could not be served has left its own headers behind.
    for (const name of ['ETag', 'Last-Modified', 'Accept-Ranges']) response.removeHeader(name);
    response.type('application/json');
    const { code, message, retryable } = error;
    response.status(status).json(errorBody({ code, message, retryable, fields: error.fields() }, context.requestId));
  }
}

/** Turns what is not a domain error into one: the framework's own refusals, a database that is away, and bugs. */
@Catch()
export class UnexpectedErrorFilter implements ExceptionFilter<unknown> {
  private readonly logger = new Logger('UnexpectedError');
  private readonly domainErrors = new DomainErrorFilter();

  catch(error: unknown, host: ArgumentsHost): void {
    this.domainErrors.catch(
      this.asDomainError(error, requestContext(host.switchToHttp().getRequest()).requestId),
      host,
    );
  }

  private asDomainError(error: unknown, requestId: string): DomainError {
    if (error instanceof DomainError) return error;
    if (error instanceof HttpException) {
      if (error.getStatus() === 404) return new RouteNotFoundError();
      if (error.getStatus() < 500) return new InvalidRequestError([{ field: 'request', message: error.message }]);
    }
    if (isDatabaseAway(error)) {
      this.logger.error({ event: 'database_away', requestId, cause: causeText(error) });
      return new ServiceUnavailableError(
        'The service cannot reach its database at the moment. Nothing was charged.',
        DATABASE_RETRY_AFTER_SECONDS,
        error,
      );
    }
    this.logger.error({ event: 'bug', requestId, stack: error instanceof Error ? error.stack : String(error) });
    return new InternalError(error);
  }
}

function causeText(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}
