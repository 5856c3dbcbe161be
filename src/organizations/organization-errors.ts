import { quoted } from '../domain/api-key-text.js';
import { DomainError } from '../domain/errors.js';

export const NAME_LENGTH_MAX = 100;
/** The largest value of the database column. */
export const MONTHLY_LIMIT_MAX = 2_147_483_647;
export const KEY_LIFETIME_DAYS_MAX = 36_500;
/** How long a rotated key can stay valid. */
export const GRACE_HOURS_MAX = 24 * 365;
export const GRACE_HOURS_DEFAULT = 24;

export class UnknownOrganizationError extends DomainError {
  constructor(idOrName: string) {
    super('not_found', `No organization has the ID or name ${quoted(idOrName)}.`);
  }
}

export class UnknownKeyError extends DomainError {
  constructor(id: string) {
    super('not_found', `No API key has the ID ${quoted(id)}.`);
  }
}

/** A key that is no longer active cannot be rotated. */
export class InactiveKeyError extends DomainError {
  constructor(id: string) {
    super('conflict', `The key ${quoted(id)} is revoked, expired or already replaced. Issue a new key instead.`);
  }
}
