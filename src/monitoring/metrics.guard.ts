import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { Environment } from '../config/environment.js';
import { DomainError } from '../domain/errors.js';
import { SecretToken } from '../http/bearer-token.js';

/** The metrics token is missing or wrong. */
export class MetricsTokenError extends DomainError {
  readonly code = 'unauthorized';

  constructor() {
    super('Send the metrics token of the service in the header "Authorization: Bearer <METRICS_TOKEN>".');
  }
}

/** Requires `METRICS_TOKEN` as the Bearer token when it is set. */
@Injectable()
export class MetricsGuard implements CanActivate {
  private readonly token: SecretToken | undefined;

  constructor({ METRICS_TOKEN }: Environment) {
    this.token = METRICS_TOKEN === undefined ? undefined : new SecretToken(METRICS_TOKEN);
  }

  canActivate(context: ExecutionContext): boolean {
    if (this.token && !this.token.isIn(context.switchToHttp().getRequest<Request>())) throw new MetricsTokenError();
    return true;
  }
}
