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

export class ExternalIdTakenError extends DomainError {
  constructor(externalId: string) {
    super('conflict', `Another organization has the external ID ${quoted(externalId)}.`);
  }
}

export class TokenClientError extends DomainError {
  constructor(id: string) {
    super('conflict', `${quoted(id)} is a client of the identity provider: it has no key to rotate.`);
  }
}

/** A revoked key stays revoked. */
export class RevokedKeyError extends DomainError {
  constructor(id: string) {
    super('conflict', `${quoted(id)} is an API key: only clients of the identity provider can be unblocked.`);
  }
}

export class InactiveKeyError extends DomainError {
  constructor(id: string) {
    super('conflict', `The key ${quoted(id)} is revoked, expired or already replaced. Issue a new key instead.`);
  }
}
