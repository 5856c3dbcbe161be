import { DomainError, InvalidRequestError } from '../domain/errors.js';
import { PLANS } from '../domain/plan.js';
import { redactApiKeys } from './api-key.js';

/** The largest monthly limit that can be stored. */
export const MONTHLY_LIMIT_MAX = 2_147_483_647;
export const NAME_LENGTH_MAX = 100;

export class UnknownOrganizationError extends DomainError {
  readonly code = 'not_found';

  constructor(idOrName: string) {
    super(`There is no organization with the id or name ${quoted(idOrName)}.`);
  }
}

/** A name that several organizations have was given where one is meant. */
export class AmbiguousOrganizationError extends InvalidRequestError {
  constructor(name: string, ids: readonly string[]) {
    super([
      {
        field: 'organization',
        message: `Several organizations are named ${quoted(name)}; give an id: ${ids.join(', ')}.`,
      },
    ]);
  }
}

export class UnknownKeyError extends DomainError {
  readonly code = 'not_found';

  constructor(id: string) {
    super(`There is no key with the id ${quoted(id)}.`);
  }
}

/** A key that is at its end already was to be rotated. */
export class InactiveKeyError extends DomainError {
  readonly code = 'conflict';

  constructor(id: string) {
    super(`The key ${quoted(id)} is revoked, expired or replaced already; issue a new one.`);
  }
}

export class UnknownPlanError extends InvalidRequestError {
  constructor(plan: string) {
    super([{ field: 'plan', message: `There is no plan ${quoted(plan)}; the plans are ${PLANS.join(' and ')}.` }]);
  }
}

export class InvalidNameError extends InvalidRequestError {
  constructor(message = `A name has 1 to ${NAME_LENGTH_MAX} characters, none of them a control character.`) {
    super([{ field: 'name', message }]);
  }
}

export class InvalidLimitError extends InvalidRequestError {
  constructor() {
    super([{ field: 'monthlyLimit', message: `A monthly limit is a whole number from 0 to ${MONTHLY_LIMIT_MAX}.` }]);
  }
}

/** A page was asked for that begins after something which is not in the list. */
export class UnknownCursorError extends InvalidRequestError {
  constructor(after: string) {
    super([{ field: 'after', message: `after must be the "next" of a page of this list, not ${quoted(after)}.` }]);
  }
}

/** A change that changes nothing was asked for. */
export class EmptyChangeError extends InvalidRequestError {
  constructor() {
    super([{ field: 'body', message: 'Give plan, monthlyLimit or both.' }]);
  }
}

export class InvalidLifetimeError extends InvalidRequestError {
  constructor(field: string, message: string) {
    super([{ field, message }]);
  }
}

function quoted(text: string): string {
  return JSON.stringify(redactApiKeys(text).slice(0, NAME_LENGTH_MAX));
}
