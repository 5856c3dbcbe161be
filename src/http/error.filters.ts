import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError, PlanLimitExceededError } from '../domain/errors.js';
import { asDomainError, causeText } from './as-domain-error.js';
import { errorBody } from './error-body.js';
import { ERROR_STATUS } from './error-status.js';
import { setQuotaHeaders } from './limit-headers.js';
import { requestContext } from './request-context.js';
import { MethodNotAllowedError, RefusedRequestError } from './routing-errors.js';

const UNAUTHORIZED: number = ERROR_STATUS.unauthorized;

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
    // A truncated body must not look complete, so the connection is destroyed.
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (status === UNAUTHORIZED) response.setHeader('WWW-Authenticate', 'Bearer');
    if (error instanceof MethodNotAllowedError) response.setHeader('Allow', error.allowed);
    if (error instanceof PlanLimitExceededError) setQuotaHeaders(response, error.quota);
    if (error.retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(error.retryAfterSeconds));
    // A static file that failed to send has already set its headers.
    for (const name of ['ETag', 'Last-Modified', 'Accept-Ranges']) response.removeHeader(name);
    response.type('application/json');
    const { code, message, retryable } = error;
    response.status(status).json(errorBody({ code, message, retryable, fields: error.fields() }, context.requestId));
  }
}

/** Maps every other error to a domain error: the framework's own, an unavailable database, and bugs. */
@Catch()
export class UnexpectedErrorFilter implements ExceptionFilter<unknown> {
  private readonly domainErrors = new DomainErrorFilter();

  catch(error: unknown, host: ArgumentsHost): void {
    this.domainErrors.catch(asDomainError(error, requestContext(host.switchToHttp().getRequest()).requestId), host);
  }
}
