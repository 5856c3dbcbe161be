import { createHash, timingSafeEqual } from 'node:crypto';
import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { Environment } from '../../config/environment.js';
import { DomainError } from '../../domain/errors.js';
import { bearerToken } from '../../http/bearer.js';
import { requestContext } from '../../http/request-context.js';
import { RouteNotFoundError } from '../../http/routing-errors.js';

/** No admin token, or another one than the service's. */
export class AdminTokenError extends DomainError {
  readonly code = 'unauthorized';

  constructor() {
    super('Send the admin token of the service in the header "Authorization: Bearer <ADMIN_TOKEN>".');
  }
}

/** Lets the holder of `ADMIN_TOKEN` pass; while none is set there is nothing here (404). */
@Injectable()
export class AdminGuard implements CanActivate {
  private readonly expected: Buffer | undefined;

  constructor({ ADMIN_TOKEN }: Environment) {
    this.expected = ADMIN_TOKEN === undefined ? undefined : digest(ADMIN_TOKEN);
  }

  canActivate(context: ExecutionContext): boolean {
    if (!this.expected) throw new RouteNotFoundError();
    const request = context.switchToHttp().getRequest<Request>();
    const given = bearerToken(request);
    // Digests are of one length and tell nothing of how far a guess was right.
    if (given === undefined || !timingSafeEqual(digest(given), this.expected)) throw new AdminTokenError();
    requestContext(request).log['admin'] = true;
    return true;
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
