import { HttpException, Logger } from '@nestjs/common';
import { isDatabaseUnavailable } from '../../database/database-errors.js';
import { DatabaseUnavailableError, DomainError, InternalError, invalidField } from '../../domain/errors.js';
import { RepeatedLines } from '../../observability/logging/repeated-lines.js';
import type { RequestContext } from '../server/request-context.js';

/** Seconds after which a caller may try again when the database is unavailable. */
const DATABASE_RETRY_AFTER_SECONDS = 5;

const logger = new Logger('UnexpectedError');
const databaseAway = new RepeatedLines((line) => logger.error(line));

/** Turns what is not a domain error into one: the framework's own refusals, an unavailable database, and bugs, which are logged. */
export function asDomainError(error: unknown, requestId: string): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof HttpException && error.getStatus() < 500) return invalidField('request', error.message);
  if (isDatabaseUnavailable(error)) {
    databaseAway.write('database_away', { event: 'database_away', requestId, cause: causeText(error) });
    return new DatabaseUnavailableError(DATABASE_RETRY_AFTER_SECONDS, error);
  }
  logger.error({ event: 'bug', requestId, stack: error instanceof Error ? error.stack : String(error) });
  return new InternalError(error);
}

/** The cause of an error as the log shows it. */
export function causeText(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}

/** Refusals for what the caller is or does: an operator looks for its address. */
const REFUSALS_OF_CALLERS: readonly number[] = [401, 403, 429];

/** Adds an error to the log line of its call. */
export function logError({ log, address }: RequestContext, error: DomainError): void {
  log['code'] = error.code;
  if (error.cause !== undefined) log['cause'] = causeText(error.cause);
  if (REFUSALS_OF_CALLERS.includes(error.status)) log['address'] = address;
}
