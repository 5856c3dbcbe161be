import type { JWTPayload } from 'jose';
import { SCOPES, tokenScope, type Person, type Scope } from '../../domain/caller.js';
import { EXTERNAL_ID_LENGTH_MAX, normalizedText } from '../../organizations/limits.js';
import { InvalidTokenError } from '../auth-errors.js';

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? normalizedText(value, EXTERNAL_ID_LENGTH_MAX) : undefined;

/** A claim that is one text; providers that can name several send a list. */
export function textClaim(claims: JWTPayload, name: string): string | undefined {
  const value = claims[name];
  if (!Array.isArray(value)) return textOf(value);
  return value.length === 1 ? textOf(value[0]) : undefined;
}

/** The client that a token was issued to. @throws InvalidTokenError */
export function clientOf(claims: JWTPayload): string {
  const client = textOf(claims['azp']) ?? textOf(claims['client_id']);
  if (client === undefined) throw new InvalidTokenError('names no client (azp or client_id)');
  return client;
}

/** Whether a claim is a value, or a list with it. */
export function hasClaim(claims: JWTPayload, { claim, value }: { claim: string; value: string }): boolean {
  const given = claims[claim];
  return Array.isArray(given) ? given.includes(value) : given === value;
}

/** The scopes of this service that a token has: the claim `scope` is one text (RFC 9068), of some providers a list. */
export function scopesOf({ scope }: JWTPayload): Scope[] {
  const names: unknown[] = Array.isArray(scope) ? scope : typeof scope === 'string' ? scope.split(' ') : [];
  return SCOPES.filter((name) => names.includes(tokenScope(name)));
}

/** Whom a token names. @throws InvalidTokenError */
export function personOf(claims: JWTPayload): Person {
  const sub = textOf(claims.sub);
  if (sub === undefined) throw new InvalidTokenError('names nobody (sub)');
  return { sub, email: textOf(claims['email']) ?? null };
}
