import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { FailedAuthentications } from '../../auth/failed-authentications.js';
import { Environment } from '../../config/environment.js';
import { DomainError, RouteNotFoundError } from '../../domain/errors.js';
import { SecretToken } from '../../http/bearer-token.js';
import { requestContextOf } from '../../http/request-context.js';

const ADMIN_PATH = /^\/admin(?:\/|$)/;

/** The admin token is missing or invalid. */
export class AdminTokenError extends DomainError {
  readonly code = 'unauthorized';

  constructor() {
    super('Send the admin token in the header "Authorization: Bearer <ADMIN_TOKEN>".');
  }
}

/** Middleware: while no admin token is set, every path under `/admin` is 404, including undefined routes and methods. */
export function hideAdmin({ ADMIN_TOKEN }: Environment) {
  return (request: Request, _response: Response, next: NextFunction): void => {
    next(ADMIN_TOKEN === undefined && ADMIN_PATH.test(request.path) ? new RouteNotFoundError() : undefined);
  };
}

/**
 * Requires `ADMIN_TOKEN`; while none is set, the routes do not exist (404). An address that sent too many wrong tokens
 * gets 429, and the correct token is always accepted.
 */
@Injectable()
export class AdminGuard implements CanActivate {
  private readonly token: SecretToken | undefined;

  constructor(
    { ADMIN_TOKEN }: Environment,
    private readonly failed: FailedAuthentications,
  ) {
    this.token = ADMIN_TOKEN === undefined ? undefined : new SecretToken(ADMIN_TOKEN);
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (!this.token) throw new RouteNotFoundError();
    const call = requestContextOf(context);
    if (!this.token.isIn(context.switchToHttp().getRequest<Request>())) {
      await this.failed.record(call, 'admin token');
      throw new AdminTokenError();
    }
    Object.assign(call.log, { admin: true, address: call.address });
    return true;
  }
}
