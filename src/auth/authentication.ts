import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { Caller, Person } from '../domain/caller.js';
import { DomainError, InvalidApiKeyError, UnauthorizedError } from '../domain/errors.js';
import { SecretToken } from '../http/bearer-token.js';
import type { RequestContext } from '../http/request-context.js';
import { ApiKeysService } from '../organizations/api-keys.service.js';
import { TokenClientsService } from '../organizations/token-clients.service.js';
import { RejectionMetrics, type AuthenticationFailure } from '../rate-limit/rejection-metrics.js';
import {
  AdminRoleRequiredError,
  AdminTokenError,
  ClientBlockedError,
  InvalidTokenError,
  OrganizationNotLinkedError,
  TooManyClientsError,
} from './auth-errors.js';
import { FailedAuthentications } from './failed-authentications.js';
import { clientOf, hasClaim, personOf, textClaim } from './oidc/claims.js';
import { IdentityProvider } from './oidc/identity-provider.js';

/** Decides who calls: over HTTP, by messages, with MCP and under `/admin`; by an API key, a token or the admin token. */
@Injectable()
export class Authentication {
  private readonly adminToken: SecretToken | undefined;

  constructor(
    private readonly environment: Environment,
    private readonly apiKeys: ApiKeysService,
    private readonly clients: TokenClientsService,
    private readonly provider: IdentityProvider,
    private readonly failed: FailedAuthentications,
    private readonly metrics: RejectionMetrics,
  ) {
    const { ADMIN_TOKEN } = environment;
    this.adminToken = ADMIN_TOKEN === undefined ? undefined : new SecretToken(ADMIN_TOKEN);
  }

  /**
   * Identifies the caller. An address that keeps failing is refused without a lookup, unless its key was valid recently or the
   * client of its token accepted: guesses cost the database nothing, and they lock out no customer of the same address.
   *
   * @throws UnauthorizedError, InvalidApiKeyError, InvalidTokenError, OrganizationNotLinkedError, ClientBlockedError,
   * ProviderUnavailableError, TooManyFailedAuthenticationsError
   */
  async caller(context: RequestContext): Promise<Caller> {
    const { credential } = context;
    if (this.provider.accepts(credential)) return this.callerByToken(context, credential);
    if (!this.isRecentKey(credential)) await this.failed.refuseThrottled(context);
    if (credential === undefined)
      return this.refuse(context, 'no_key', new UnauthorizedError(context.credentialLocation));
    const caller = await this.apiKeys.authenticate(credential);
    return caller ?? this.refuse(context, 'invalid_key', new InvalidApiKeyError(credential));
  }

  private async callerByToken(context: RequestContext, token: string): Promise<Caller> {
    const claims = await this.provider
      .verify(token)
      .catch((error: unknown) => this.refuse(context, 'invalid_token', error));
    const { OIDC_ORGANIZATION_CLAIM: claim } = this.environment;
    const [client, externalId] = [clientOf(claims), textClaim(claims, claim)];
    if (client === undefined) return this.refuse(context, 'invalid_token', noClient());
    const notLinked = new OrganizationNotLinkedError(claim, externalId);
    if (externalId === undefined) return this.refuse(context, 'organization_not_linked', notLinked);
    if (!this.clients.wasRecentlyAccepted(externalId, client)) await this.failed.refuseThrottled(context);
    const found = await this.clients.authenticate(externalId, client);
    if (found === 'not_linked') return this.refuse(context, 'organization_not_linked', notLinked);
    if (found === 'blocked') return this.refuse(context, 'client_blocked', new ClientBlockedError());
    if (found === 'too_many') return this.refuse(context, 'client_blocked', new TooManyClientsError());
    return found;
  }

  /**
   * Identifies the operator of a call to `/admin`. The admin token is accepted from every address.
   *
   * @returns null for the admin token, which names nobody
   * @throws AdminTokenError, InvalidTokenError, AdminRoleRequiredError, ClientBlockedError, ProviderUnavailableError,
   * TooManyFailedAuthenticationsError
   */
  async operator(context: RequestContext): Promise<Person | null> {
    const { credential } = context;
    if (this.adminToken?.matches(credential)) return null;
    try {
      return await this.personByToken(credential);
    } catch (error) {
      if (!isUnavailable(error)) await this.failed.record(context, 'admin token');
      throw error;
    }
  }

  private async personByToken(credential: string | undefined): Promise<Person> {
    const { OIDC_ADMIN_CLAIM: required } = this.environment;
    if (!required || !this.provider.accepts(credential)) throw new AdminTokenError(credential);
    const claims = await this.provider.verify(credential);
    if (!hasClaim(claims, required)) throw new AdminRoleRequiredError();
    const client = clientOf(claims);
    if (client === undefined) throw noClient();
    const person = personOf(claims);
    if (!person) throw new InvalidTokenError('names nobody (sub)');
    if (await this.clients.isBlocked(client)) throw new ClientBlockedError();
    return person;
  }

  /** Counts a call that is refused before any look-up as a failure, unless its key was valid recently or its token is. */
  async recordUnverified(context: RequestContext): Promise<void> {
    const { credential } = context;
    const isVerified = this.provider.accepts(credential)
      ? await this.provider.verify(credential, { waits: false }).then(() => true, isUnavailable)
      : this.isRecentKey(credential);
    if (!isVerified) await this.failed.record(context);
  }

  private isRecentKey(credential: string | undefined): boolean {
    return credential !== undefined && this.apiKeys.wasRecentlyValid(credential);
  }

  /** Counts a failure of the address. An unavailable provider is none. */
  private async refuse(context: RequestContext, reason: AuthenticationFailure, error: unknown): Promise<never> {
    if (!isUnavailable(error)) {
      this.metrics.countFailure(reason);
      await this.failed.record(context);
    }
    throw error;
  }
}

const noClient = (): InvalidTokenError => new InvalidTokenError('names no client (azp or client_id)');

/** Whether an error says nothing about the credential. */
function isUnavailable(error: unknown): boolean {
  return !(error instanceof DomainError) || error.status === 503;
}
