import { type ArgumentsHost, Catch, type ExceptionFilter, NotFoundException } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Environment } from '../../config/environment.js';
import { MethodNotAllowedError, PlanLimitExceededError, RouteNotFoundError } from '../../domain/errors.js';
import { challengeOf } from './challenge.js';
import { DOCS_PAGE, errorBody } from './error-body.js';
import { asDomainError, logError } from './error-report.js';
import { setQuotaHeaders } from '../routes/limit-headers.js';
import { meantPath } from './meant-path.js';
import { requestContext } from '../server/request-context.js';
import { Routes } from '../routes/routes.js';

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
    if (status === 401) response.setHeader('WWW-Authenticate', challengeOf(request, error.code, this.environment));
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
