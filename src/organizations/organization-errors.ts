import { quoted } from '../domain/api-key-text.js';
import { DomainError } from '../domain/errors.js';

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
