import { Logger } from '@nestjs/common';
import { createLocalJWKSet, errors, type JWK, type JWTVerifyGetKey, type LocalJWKSet } from 'jose';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { isProviderUrl } from '../../config/variables.js';
import { causeText } from '../../http/errors/error.filter.js';
import { ProviderUnavailableError } from '../auth-errors.js';

/** Asymmetric ones: with others, whoever can check a token could make one. */
export const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');
/** Of an RSA key. */
const BITS_MIN = 2048;

/** The least time from the end of an attempt to the next while keys are known: invented keys cost the provider no more. */
const RENEWAL_PAUSE_MS = 60_000;
/** The same while none is known, because no token is accepted then. */
const FIRST_PAUSE_MS = 5_000;
/** The first call or probe after that renews the keys in the background, which ends what the provider has withdrawn. */
const KEYS_MAX_AGE_MS = 10 * 60_000;
/** Of an attempt with both of its requests. */
const TIMEOUT_MS = 5_000;
const BYTES_MAX = 1024 * 1024;

const discovery = z.object({ issuer: z.string(), jwks_uri: z.string() });
const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

/** Whether a signature can be checked with a published key by any of the algorithms. */
async function isUsable(key: JWK): Promise<boolean> {
  const set = createLocalJWKSet({ keys: [key] });
  for (const alg of ALGORITHMS) {
    const { algorithm } = (await set({ alg }).catch(() => undefined)) ?? {};
    if (algorithm) return !('modulusLength' in algorithm) || Number(algorithm.modulusLength) >= BITS_MIN;
  }
  return false;
}

/** Where a discovery document says that the keys of an issuer are. @throws Error unless it is of that issuer, and its keys are as safe */
export function jwksUriOf(document: unknown, issuer: string): string {
  const { issuer: named, jwks_uri: uri } = discovery.parse(document);
  if (named !== issuer)
    throw new Error('The provider names another issuer than OIDC_ISSUER, whose text must be exactly the same.');
  if (!isProviderUrl(uri) || (issuer.startsWith('https:') && !uri.startsWith('https:')))
    throw new Error('The provider names a jwks_uri that is not an https:// URL.');
  return uri;
}

/**
 * The public keys of an OpenID provider, as its discovery document names them. A call with a known key never waits for it. Around
 * `createRemoteJWKSet` of jose all of this would be needed as well, except for `keySet`: the discovery, the bound, the check of each
 * key, and the pauses, which it measures by the wall clock and not after a failure.
 */
export class SigningKeys {
  private readonly logger = new Logger(SigningKeys.name);
  // Requests are rare, so that no connection is kept.
  private readonly agent = new Agent({ pipelining: 0, maxResponseSize: BYTES_MAX });
  private known: LocalJWKSet | undefined;
  private renewal: Promise<LocalJWKSet> | undefined;
  private readAtMs = -Infinity;
  private triedAtMs = -Infinity;
  /** The cause, if the last attempt failed. */
  private failure: string | undefined;

  constructor(private readonly issuer: string) {}

  /**
   * Finds the key of a token.
   *
   * @throws ProviderUnavailableError when the key is not known and the provider does not respond
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const known = this.known ?? (await this.renew());
    if (this.areTooOld()) this.renewBeside();
    return known(header, token).catch(async (error: unknown) => {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      return (await this.renew())(header, token);
    });
  };

  /** Finds the key of a token among those that are known. @throws ProviderUnavailableError when none is */
  readonly findKnown: JWTVerifyGetKey = async (header, token) => {
    if (!this.known) throw new ProviderUnavailableError(Math.ceil(FIRST_PAUSE_MS / 1000));
    return this.known(header, token);
  };

  /** Whether the last attempt to read the keys succeeded. Starts the next one when it is due, so that this becomes true again. */
  isAvailable(): boolean {
    if (this.failure !== undefined || this.areTooOld()) this.renewBeside();
    return this.failure === undefined;
  }

  private areTooOld(): boolean {
    return performance.now() - this.readAtMs >= KEYS_MAX_AGE_MS;
  }

  /** A failure is in the log. */
  private renewBeside(): void {
    this.renew().catch(() => undefined);
  }

  /** Calls at the same time share one attempt. */
  private renew(): Promise<LocalJWKSet> {
    this.renewal ??= this.attempt().finally(() => (this.renewal = undefined));
    return this.renewal;
  }

  private async attempt(): Promise<LocalJWKSet> {
    const pauseMs = this.known ? RENEWAL_PAUSE_MS : FIRST_PAUSE_MS;
    const waitMs = this.triedAtMs + pauseMs - performance.now();
    if (waitMs > 0 && this.known && this.failure === undefined) return this.known;
    if (waitMs > 0) throw new ProviderUnavailableError(Math.ceil(waitMs / 1000));
    try {
      this.known = await this.read();
      this.readAtMs = performance.now();
      this.failure = undefined;
      return this.known;
    } catch (error) {
      const cause = causeText(error);
      if (cause !== this.failure)
        this.logger.warn({ event: 'identity_provider_unavailable', issuer: this.issuer, cause });
      this.failure = cause;
      throw new ProviderUnavailableError(Math.ceil(pauseMs / 1000), error);
    } finally {
      this.triedAtMs = performance.now();
    }
  }

  private async read(): Promise<LocalJWKSet> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const url = `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const jwksUri = jwksUriOf(await this.get(url, signal), this.issuer);
    const { keys } = keySet.parse(await this.get(jwksUri, signal));
    // A key that cannot be used is unknown, so that the provider is asked for it again.
    const usable: JWK[] = [];
    for (const key of keys) if (await isUsable(key)) usable.push(key);
    if (usable.length === 0) throw new Error('The provider publishes no key with which a signature can be checked.');
    return createLocalJWKSet({ keys: usable });
  }

  private async get(url: string, signal: AbortSignal): Promise<unknown> {
    const headers = { accept: 'application/json' };
    const { statusCode, body } = await request(url, { dispatcher: this.agent, signal, headers });
    if (statusCode === 200) return body.json();
    await body.dump();
    throw new Error(`The provider responded with ${statusCode} to ${new URL(url).pathname}.`);
  }
}
