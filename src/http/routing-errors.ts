import type { HttpStatus } from '@nestjs/common';
import { DomainError, InvalidRequestError } from '../domain/errors.js';

/** No such route. */
export class RouteNotFoundError extends DomainError {
  readonly code = 'not_found';

  constructor() {
    super('There is nothing at this address. See /docs for what there is.');
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

/** A body that was not read to its end, or not understood; `status` tells why: 400, 413 or 415. */
export class RefusedBodyError extends InvalidRequestError {
  constructor(
    readonly status: HttpStatus,
    message: string,
  ) {
    super([{ field: 'body', message }]);
  }
}

/** A bug; nothing of its cause leaks into the answer. */
export class InternalError extends DomainError {
  readonly code = 'internal_error';

  constructor(cause: unknown) {
    super('Something went wrong in the service. The request id leads to the cause in its log.', cause);
  }
}
