import type { HttpStatus } from '@nestjs/common';
import { DomainError, InvalidRequestError } from '../domain/errors.js';

/** No such route. */
export class RouteNotFoundError extends DomainError {
  readonly code = 'not_found';

  constructor() {
    super('Not found. See /docs for the available endpoints.');
  }
}

/** The route exists, for other methods than the one used. */
export class MethodNotAllowedError extends DomainError {
  readonly code = 'method_not_allowed';

  /** @param allowed the methods that the address answers, e.g. `GET, HEAD` */
  constructor(readonly allowed: string) {
    super(`This address answers ${allowed} only.`);
  }
}

/** A request that is refused for its form, with a status of its own that tells why. */
export class RefusedRequestError extends InvalidRequestError {
  /** @param field which part of the request is wrong */
  constructor(
    readonly status: number,
    field: string,
    message: string,
  ) {
    super([{ field, message }]);
  }
}

/** A body that was not read to its end, or not understood; `status` tells why: 400, 413 or 415. */
export class RefusedBodyError extends RefusedRequestError {
  constructor(status: HttpStatus, message: string) {
    super(status, 'body', message);
  }
}

/** A bug; nothing of its cause leaks into the answer. */
export class InternalError extends DomainError {
  readonly code = 'internal_error';

  constructor(cause: unknown) {
    super('Something went wrong in the service. The request id leads to the cause in its log.', cause);
  }
}
