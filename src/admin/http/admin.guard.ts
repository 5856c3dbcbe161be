import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { FailedAuthentications } from '../../auth/failed-authentications.js';
import { Environment } from '../../config/environment.js';
import { DomainError } from '../../domain/errors.js';
import { SecretToken } from '../../http/bearer-token.js';
import { requestContextOf } from '../../http/request-context.js';
import { RouteNotFoundError } from '../../http/routing-errors.js';

/** No admin token, or another one than the service's. */
export class AdminTokenError extends DomainError {
  readonly code = 'unauthorized';

  constructor() {
    super('Send the admin token of the service in the header "Authorization: Bearer <ADMIN_TOKEN>".');
  }
}

/**
 * Lets the holder of `ADMIN_TOKEN` pass; while none is set there is nothing here (404). An address that has sent too
 * many wrong tokens gets 429, and the right one is never held back.
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
    call.log['admin'] = true;
    return true;
  }
}
