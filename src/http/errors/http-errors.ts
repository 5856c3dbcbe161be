import { refusalOf } from '../../domain/api-key-text.js';
import { DomainError, InvalidRequestError } from '../../domain/errors.js';

/** A malformed request with a more specific status than 400, or one that is not read any further. */
export class RefusedRequestError extends InvalidRequestError {
  /** @param field the part of the request that is malformed */
  constructor(
    override readonly status: number,
    field: string,
    message: string,
  ) {
    super([{ field, message }]);
  }
}

export class RouteNotFoundError extends DomainError {
  /** @param meant the path that is meant, as the OpenAPI document has it */
  constructor(meant?: string) {
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
    super('not_found', `Not found.${hint} See /docs for the available endpoints.`);
  }
}

/** The route exists for other methods. */
export class MethodNotAllowedError extends DomainError {
  /** @param allowed the methods of the route, e.g. `GET, HEAD` */
  constructor(readonly allowed: string) {
    super('method_not_allowed', `Method not allowed. Use ${allowed}.`);
  }
}

/** The request has no credential, or one that is none. */
export class UnauthorizedError extends DomainError {
  /**
   * @param place where to send the credential
   * @param expected what to send there, with its article
   * @param sent what was sent there instead
   */
  constructor(place = 'the header "Authorization: Bearer <API_KEY>"', expected = 'an API key', sent = '') {
    super('unauthorized', sent === '' ? `Send ${expected} in ${place}.` : refusalOf(sent, expected));
  }
}
