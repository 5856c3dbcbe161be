import { DomainError, InvalidRequestError } from '../domain/errors.js';
import { WEBHOOKS_MAX } from './webhook.js';

export class TooManyWebhooksError extends DomainError {
  readonly code = 'conflict';

  constructor() {
    super(`Your organization has ${WEBHOOKS_MAX} webhooks, which is the maximum. Delete one first.`);
  }
}

/** The service has no key for the secrets of webhooks. */
export class WebhooksDisabledError extends DomainError {
  readonly code = 'conflict';

  constructor() {
    super(
      'Webhooks are disabled on this service. Its operator enables them by setting WEBHOOK_SECRET_KEY to 32 or more random ' +
        'characters (openssl rand -hex 32).',
    );
  }
}

/** The secret is encrypted with a key that this process does not have. */
export class UnreadableSecretError extends DomainError {
  readonly code = 'conflict';

  constructor() {
    super('The secret of this webhook cannot be read any more. Rotate it to get a new one.');
  }
}

export class InvalidUrlError extends InvalidRequestError {
  /** @param message what is wrong with the field `url` */
  constructor(message: string) {
    super([{ field: 'url', message }]);
  }
}
