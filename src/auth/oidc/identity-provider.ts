import { errors, jwtVerify, type JWTPayload } from 'jose';
import type { Environment } from '../../config/environment.js';
import { DomainError } from '../../domain/errors.js';
import { InvalidTokenError } from '../auth-errors.js';
import { ALGORITHMS, SigningKeys } from './signing-keys.js';

const TOLERANCE_SECONDS = 30;

/** Base64url of `{"` or of `{` and a space, and a dot: no API key begins so. */
const TOKEN = /^ey[JA][\w-]*\./;

/** The types of a token that can be an access token. */
const TYPE = /^(?:application\/)?(?:at\+)?jwt$/i;
/** In the claim `typ`, in which Keycloak tells its tokens apart. */
const OTHER_TYPES: readonly unknown[] = ['ID', 'Logout'];

/** What is wrong with a claim that is not as it must be. */
const CLAIMS: Readonly<Record<string, string>> = {
  iss: 'is from another issuer than OIDC_ISSUER (iss)',
  aud: 'is for another audience than OIDC_AUDIENCE (aud)',
  exp: 'has no valid time of expiry (exp)',
  nbf: 'is not valid yet (nbf)',
};

const REASONS: Readonly<Record<string, string>> = {
  [errors.JWTExpired.code]: 'has expired (exp)',
  [errors.JOSEAlgNotAllowed.code]: 'is signed with an algorithm that is not accepted (alg)',
  [errors.JWSSignatureVerificationFailed.code]: 'has a wrong signature',
  [errors.JWKSNoMatchingKey.code]: 'is signed with a key that the provider does not publish in a usable form (kid)',
  [errors.JWKSMultipleMatchingKeys.code]: 'does not name the key that it is signed with (kid)',
};

/** ID tokens are signed by the same keys, and can have the same audience. Whoever stole a bound token could use it as a plain one. */
function refuseOtherTypes(payload: JWTPayload, type: unknown): void {
  if ((type !== undefined && !(typeof type === 'string' && TYPE.test(type))) || OTHER_TYPES.includes(payload['typ']))
    throw new InvalidTokenError('is not an access token (typ)');
  if ('at_hash' in payload || 'c_hash' in payload)
    throw new InvalidTokenError('is an ID token and not an access token (at_hash or c_hash)');
  if ('cnf' in payload) throw new InvalidTokenError('is bound to its sender (cnf), which this service does not check');
}

/** Checks access tokens of the operator's OpenID provider. */
export class IdentityProvider {
  private readonly keys: SigningKeys;

  private constructor(
    private readonly issuer: string,
    private readonly audience: string,
  ) {
    this.keys = new SigningKeys(issuer);
  }

  /** The provider of a configuration; null without `OIDC_ISSUER`. */
  static of({ OIDC_ISSUER, OIDC_AUDIENCE = '' }: Environment): IdentityProvider | null {
    return OIDC_ISSUER === undefined ? null : new IdentityProvider(OIDC_ISSUER, OIDC_AUDIENCE);
  }

  /** Whether a credential is meant as an access token. */
  accepts(credential: string | undefined): credential is string {
    return credential !== undefined && TOKEN.test(credential);
  }

  /** Whether its keys could be read at the last attempt. @see SigningKeys */
  isAvailable(): boolean {
    return this.keys.isAvailable();
  }

  /**
   * Checks a token, without the database.
   *
   * @param waits whether the provider may be asked for a key that is not known
   * @returns its claims
   * @throws InvalidTokenError, ProviderUnavailableError
   */
  async verify(token: string, { waits = true } = {}): Promise<JWTPayload> {
    const { issuer, audience } = this;
    const expected = { issuer, audience, requiredClaims: ['exp'], clockTolerance: TOLERANCE_SECONDS };
    const find = waits ? this.keys.find : this.keys.findKnown;
    try {
      const { payload, protectedHeader } = await jwtVerify(token, find, { ...expected, algorithms: ALGORITHMS });
      refuseOtherTypes(payload, protectedHeader.typ);
      return payload;
    } catch (error) {
      if (error instanceof DomainError) throw error;
      // The errors of the cryptography are about the key: too short, or not on its curve.
      if (!(error instanceof errors.JOSEError))
        throw new InvalidTokenError('is signed with a key of the provider that cannot be used (kid)');
      const claim = error instanceof errors.JWTClaimValidationFailed ? CLAIMS[error.claim] : undefined;
      // Not as the cause, because the error has the claims.
      throw new InvalidTokenError(claim ?? REASONS[error.code] ?? 'is malformed');
    }
  }
}
