import type { NextFunction, Request, Response } from 'express';
import type { Environment } from '../../config/environment.js';
import { RouteNotFoundError } from '../../http/routing-errors.js';

const ADMIN = /^\/admin(?:\/|$)/;

/** While no admin token is set, everything under `/admin` is as unknown as any address that nobody made. */
export function hideAdmin({ ADMIN_TOKEN }: Environment) {
  return (request: Request, _response: Response, next: NextFunction): void => {
    next(ADMIN_TOKEN === undefined && ADMIN.test(request.path) ? new RouteNotFoundError() : undefined);
  };
}
