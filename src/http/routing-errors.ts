import type { HttpStatus } from '@nestjs/common';
import { DomainError, InvalidRequestError } from '../domain/errors.js';

/** No route matches the path. */
export class RouteNotFoundError extends DomainError {
  readonly code = 'not_found';

  constructor() {
    super('Not found. See /docs for the available endpoints.');
  }
}

/** The route exists for other methods. */
export class MethodNotAllowedError extends DomainError {
  readonly code = 'method_not_allowed';

  /** @param allowed the methods of the route, e.g. `GET, HEAD` */
  constructor(readonly allowed: string) {
    super(`Method not allowed. Use ${allowed}.`);
  }
}

/** A malformed request with a more specific status than 400. */
export class RefusedRequestError extends InvalidRequestError {
  /** @param field the part of the request that is malformed */
  constructor(
    readonly status: number,
    field: string,
    message: string,
  ) {
    super([{ field, message }]);
  }
}

/** A body that is malformed (400), too large (413) or of an unsupported type (415). */
export class RefusedBodyError extends RefusedRequestError {
  constructor(status: HttpStatus, message: string) {
    super(status, 'body', message);
  }
}

/** A bug. The response does not contain its cause. */
export class InternalError extends DomainError {
  readonly code = 'internal_error';

  constructor(cause: unknown) {
    super('Internal error. The log of the service contains the cause under the request id.', cause);
  }
}
