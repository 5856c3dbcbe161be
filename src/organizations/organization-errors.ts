import { DomainError, InvalidRequestError } from '../domain/errors.js';
import { PLANS } from '../domain/plan.js';
import { redactApiKeys } from '../domain/api-key-text.js';

export const NAME_LENGTH_MAX = 100;
/** The largest value of the database column. */
export const MONTHLY_LIMIT_MAX = 2_147_483_647;
export const KEY_LIFETIME_DAYS_MAX = 36_500;
/** How long a rotated key can stay valid. */
export const GRACE_HOURS_MAX = 24 * 365;
export const GRACE_HOURS_DEFAULT = 24;

export class UnknownOrganizationError extends DomainError {
  readonly code = 'not_found';

  constructor(idOrName: string) {
    super(`No organization has the ID or name ${quoted(idOrName)}.`);
  }
}

/** The name that identifies an organization belongs to more than one. */
export class AmbiguousOrganizationError extends InvalidRequestError {
  constructor(name: string, ids: readonly string[]) {
    super([
      {
        field: 'organization',
        message: `More than one organization is named ${quoted(name)}. Use an ID instead: ${ids.join(', ')}.`,
      },
    ]);
  }
}

export class UnknownKeyError extends DomainError {
  readonly code = 'not_found';

  constructor(id: string) {
    super(`No API key has the ID ${quoted(id)}.`);
  }
}

/** A key that is no longer active cannot be rotated. */
export class InactiveKeyError extends DomainError {
  readonly code = 'conflict';

  constructor(id: string) {
    super(`The key ${quoted(id)} is revoked, expired or already replaced. Issue a new key instead.`);
  }
}

export class UnknownPlanError extends InvalidRequestError {
  constructor(plan: string) {
    super([{ field: 'plan', message: `plan must be ${PLANS.join(' or ')}, not ${quoted(plan)}.` }]);
  }
}

export class InvalidNameError extends InvalidRequestError {
  constructor(message = `name must have 1 to ${NAME_LENGTH_MAX} characters and no control characters.`) {
    super([{ field: 'name', message }]);
  }
}

export class InvalidLimitError extends InvalidRequestError {
  constructor() {
    super([{ field: 'monthlyLimit', message: `The monthly limit must be an integer from 0 to ${MONTHLY_LIMIT_MAX}.` }]);
  }
}

/** The cursor of a page is not an item of the list. */
export class UnknownCursorError extends InvalidRequestError {
  constructor(after: string) {
    super([
      { field: 'after', message: `after must be the "next" value of a page of this list, not ${quoted(after)}.` },
    ]);
  }
}

/** An update of an organization contains no change. */
export class EmptyChangeError extends InvalidRequestError {
  constructor() {
    super([{ field: 'body', message: 'The body must contain plan, monthlyLimit or both.' }]);
  }
}

/** The lifetime or the grace period of a key is out of range. */
export class InvalidLifetimeError extends InvalidRequestError {
  constructor(field: 'expiresInDays' | 'graceHours', min: number, max: number) {
    super([{ field, message: `${field} must be an integer from ${min} to ${max}.` }]);
  }
}

function quoted(text: string): string {
  return JSON.stringify(redactApiKeys(text).slice(0, NAME_LENGTH_MAX));
}
