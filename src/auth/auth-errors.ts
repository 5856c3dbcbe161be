import { quoted } from '../domain/api-key-text.js';
import { ERRORS } from '../domain/error-codes.js';
import { DomainError, fixedError, ServiceUnavailableError } from '../domain/errors.js';
import { UnauthorizedError } from '../http/errors/http-errors.js';
import { EXTERNAL_ID_LENGTH_MAX } from '../organizations/organization.entity.js';

/** An access token that is not accepted. The message never has a part of it. */
export class InvalidTokenError extends DomainError {
  /** @param reason what is wrong, after "The access token" */
  constructor(reason: string) {
    super('invalid_token', `The access token ${reason}.`);
  }
}

/** The token of a caller is valid, and its organization is none of this service. */
export class OrganizationNotLinkedError extends DomainError {
  /** @param externalId the value of the claim; undefined when the token names no organization, or several */
  constructor(claim: string, externalId: string | undefined) {
    const message =
      externalId === undefined
        ? `The access token has no organization: its claim ${claim} must be one text of at most ${EXTERNAL_ID_LENGTH_MAX} characters.`
        : `No organization has the external ID ${quoted(externalId)}, which is the claim ${claim} of the access token.`;
    super('organization_not_linked', message);
  }
}

/** 403 and not 401: another token of the same client would not be accepted either, so that nobody signs in again. */
export class ClientBlockedError extends fixedError(
  'client_blocked',
  'The operator has blocked this client. New tokens of it are refused as well.',
) {}

/** The same for a client that is not known yet. */
export class TooManyClientsError extends fixedError(
  'client_blocked',
  '1,000 clients of the organization have called with tokens in the last 30 days. Further clients are refused until there are fewer.',
) {}

/** The token is valid, and its holder is no administrator. */
export class AdminRoleRequiredError extends fixedError('admin_role_required', ERRORS.admin_role_required.message) {}

/** What `/admin` accepts is missing or invalid. */
export class AdminTokenError extends UnauthorizedError {
  /** @param accepted what may be sent, of which at least one is configured */
  constructor(accepted = { adminToken: true, accessToken: true }, sent?: string) {
    const names = [accepted.adminToken && 'the admin token', accepted.accessToken && 'an access token'];
    super('the header "Authorization: Bearer <TOKEN>"', names.filter(Boolean).join(' or '), sent);
  }
}

/** The key of a token is not known, and the identity provider cannot be asked for it. */
export class ProviderUnavailableError extends ServiceUnavailableError {
  constructor(retryAfterSeconds: number, cause?: unknown) {
    const message = 'The keys of the identity provider cannot be read, so that this access token cannot be checked.';
    super(`${message} Retry shortly.`, retryAfterSeconds, cause);
  }
}

/** How tokens are refused wherever they are accepted, for the OpenAPI document. */
export const TOKEN_REFUSALS = [new InvalidTokenError('has expired (exp)'), new ClientBlockedError()];
