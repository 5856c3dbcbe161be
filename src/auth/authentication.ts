import { createHash, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { JWTPayload } from 'jose';
import { LRUCache } from 'lru-cache';
import { Environment } from '../config/environment.js';
import { SCOPES, type Caller, type Person, tokenScope, type Scope } from '../domain/caller.js';
import { DomainError, InvalidApiKeyError } from '../domain/errors.js';
import { UnauthorizedError } from '../http/errors/http-errors.js';
import type { RequestContext } from '../http/server/request-context.js';
import { hashKey } from '../organizations/api-key.js';
import { ApiKeysService } from '../organizations/api-keys.service.js';
import { TokenClientsService } from '../organizations/token-clients.service.js';
import { RejectionMetrics } from '../rate-limit/rejection-metrics.js';
import {
  AdminRoleRequiredError,
  AdminTokenError,
  ClientBlockedError,
  OrganizationNotLinkedError,
  TooManyClientsError,
  InvalidTokenError,
} from './auth-errors.js';
import { FailedAuthentications } from './failed-authentications.js';
import { IdentityProvider } from './oidc/identity-provider.js';
import { EXTERNAL_ID_LENGTH_MAX, normalizedText } from '../organizations/organization.entity.js';

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? normalizedText(value, EXTERNAL_ID_LENGTH_MAX) : undefined;

/** A claim that is one text; providers that can name several send a list. */
function textClaim(claims: JWTPayload, name: string): string | undefined {
  const value = claims[name];
  if (!Array.isArray(value)) return textOf(value);
  return value.length === 1 ? textOf(value[0]) : undefined;
}

/** The client that a token was issued to. @throws InvalidTokenError */
function clientOf(claims: JWTPayload): string {
  const client = textOf(claims['azp']) ?? textOf(claims['client_id']);
  if (client === undefined) throw new InvalidTokenError('names no client (azp or client_id)');
  return client;
}

/** Whether a claim is a value, or a list with it. */
function hasClaim(claims: JWTPayload, { claim, value }: { claim: string; value: string }): boolean {
  const given = claims[claim];
  return Array.isArray(given) ? given.includes(value) : given === value;
}

/** The scopes of this service that a token has: the claim `scope` is one text (RFC 9068), of some providers a list. */
function scopesOf({ scope }: JWTPayload): Scope[] {
  const names: unknown[] = Array.isArray(scope) ? scope : typeof scope === 'string' ? scope.split(' ') : [];
  return SCOPES.filter((name) => names.includes(tokenScope(name)));
}

/** Whom a token names. @throws InvalidTokenError */
function personOf(claims: JWTPayload): Person {
  const sub = textOf(claims.sub);
  if (sub === undefined) throw new InvalidTokenError('names nobody (sub)');
  return { sub, email: textOf(claims['email']) ?? null };
}

/** Decides who calls: over HTTP, by messages, with MCP and under `/admin`; by an API key, a token or the admin token. */
@Injectable()
export class Authentication {
  private readonly adminToken: SecretToken | undefined;
  /** The callers that were valid at their last look-up. An entry never authenticates a call. */
  private readonly recentlyValid = new LRUCache<string, true>({ max: 20_000, ttl: 10 * 60_000 });
  private only: { key: SecretToken; caller: Caller } | undefined;

  constructor(
    private readonly environment: Environment,
    private readonly apiKeys: ApiKeysService,
    private readonly clients: TokenClientsService,
    @Inject(IdentityProvider) private readonly provider: IdentityProvider | null,
    private readonly failed: FailedAuthentications,
    private readonly metrics: RejectionMetrics,
  ) {
    const { ADMIN_TOKEN } = environment;
    this.adminToken = ADMIN_TOKEN === undefined ? undefined : new SecretToken(ADMIN_TOKEN);
  }

  /** From here on accepts this key alone, of the command that runs the service in its process. */
  acceptOnly(key: string, caller: Caller): void {
    this.only = { key: new SecretToken(key), caller };
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
    if (this.only?.key.matches(credential)) return this.only.caller;
    if (this.only) throw new UnauthorizedError(context.credentialLocation, 'the key of the command');
    try {
      return await (this.provider?.accepts(credential)
        ? this.callerByToken(context, await this.provider.verify(credential))
        : this.callerByKey(context, credential));
    } catch (error) {
      if (this.metrics.countFailure(error)) await this.failed.record(context);
      throw error;
    }
  }

  private async callerByKey(context: RequestContext, key: string | undefined): Promise<Caller> {
    const name = nameOfKey(key);
    if (!this.recentlyValid.has(name)) await this.failed.refuseThrottled(context);
    const expected = this.provider ? 'an API key or an access token' : 'an API key';
    if (key === undefined) throw new UnauthorizedError(context.credentialLocation, expected);
    const found = await this.apiKeys.authenticate(key);
    if (typeof found === 'object') return this.accept(name, found);
    this.recentlyValid.delete(name);
    throw new InvalidApiKeyError(found, key, expected);
  }

  private async callerByToken(context: RequestContext, claims: JWTPayload): Promise<Caller> {
    const { OIDC_ORGANIZATION_CLAIM: claim, OIDC_SCOPES } = this.environment;
    const [client, externalId] = [clientOf(claims), textClaim(claims, claim)];
    if (externalId === undefined) throw new OrganizationNotLinkedError(claim, externalId);
    // Neither part has a control character.
    const name = `${externalId}\n${client}`;
    if (!this.recentlyValid.has(name)) await this.failed.refuseThrottled(context);
    const found = await this.clients.authenticate(externalId, client);
    const scopes = OIDC_SCOPES ? scopesOf(claims) : SCOPES;
    if (typeof found === 'object') return this.accept(name, { ...found, scopes });
    this.recentlyValid.delete(name);
    if (found === 'not_linked') throw new OrganizationNotLinkedError(claim, externalId);
    throw found === 'blocked' ? new ClientBlockedError() : new TooManyClientsError();
  }

  private accept(name: string, caller: Caller): Caller {
    this.recentlyValid.set(name, true);
    return caller;
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
      if (this.metrics.countFailure(error, 'operator')) await this.failed.record(context, 'admin token');
      throw error;
    }
  }

  private async personByToken(credential: string | undefined): Promise<Person> {
    const { OIDC_ADMIN_CLAIM: required } = this.environment;
    if (!required || !this.provider?.accepts(credential)) {
      const accepted = { adminToken: this.adminToken !== undefined, accessToken: required !== undefined };
      throw new AdminTokenError(accepted, credential);
    }
    const claims = await this.provider.verify(credential);
    if (!hasClaim(claims, required)) throw new AdminRoleRequiredError();
    const [client, person] = [clientOf(claims), personOf(claims)];
    if (await this.clients.isBlockedAsAdmin(client)) throw new ClientBlockedError();
    return person;
  }

  /** Counts a call that is refused before any look-up as a failure, unless its key was valid recently or its token is. */
  async recordUnverified(context: RequestContext): Promise<void> {
    const { credential } = context;
    const isVerified = this.provider?.accepts(credential)
      ? await this.provider.verify(credential, { waits: false }).then(() => true, isUnavailable)
      : this.recentlyValid.has(nameOfKey(credential));
    if (!isVerified) await this.failed.record(context);
  }
}

const nameOfKey = (key = ''): string => hashKey(key).toString('hex');

/** Whether an error says nothing about the credential. */
function isUnavailable(error: unknown): boolean {
  return !(error instanceof DomainError) || error.status === 503;
}

/** A token that the operator has configured, compared in constant time. */
export class SecretToken {
  private readonly expected: Buffer;

  constructor(token: string) {
    this.expected = digest(token);
  }

  matches(given: string | undefined): boolean {
    return given !== undefined && timingSafeEqual(digest(given), this.expected);
  }
}

/** `timingSafeEqual` requires inputs of the same length. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
