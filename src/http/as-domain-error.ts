import { HttpException, Logger } from '@nestjs/common';
import { isDatabaseUnavailable } from '../database/database-errors.js';
import { DatabaseUnavailableError, DomainError, InvalidRequestError } from '../domain/errors.js';
import { InternalError, RouteNotFoundError } from './routing-errors.js';

/** Seconds after which a caller may try again when the database is unavailable. */
const DATABASE_RETRY_AFTER_SECONDS = 5;

const logger = new Logger('UnexpectedError');

/** Turns what is not a domain error into one: the framework's own refusals, an unavailable database, and bugs, which are logged. */
export function asDomainError(error: unknown, requestId: string): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof HttpException) {
    if (error.getStatus() === 404) return new RouteNotFoundError();
    if (error.getStatus() < 500) return new InvalidRequestError([{ field: 'request', message: error.message }]);
  }
  if (isDatabaseUnavailable(error)) {
    logger.error({ event: 'database_away', requestId, cause: causeText(error) });
    return new DatabaseUnavailableError(DATABASE_RETRY_AFTER_SECONDS, error);
  }
  logger.error({ event: 'bug', requestId, stack: error instanceof Error ? error.stack : String(error) });
  return new InternalError(error);
}

/** The cause of an error as the log shows it. */
export function causeText(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}
