import type { JWTPayload } from 'jose';
import type { Person } from '../../domain/caller.js';

/** What can be stored and displayed. */
const TEXT = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u;
const LENGTH_MAX = 255;

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= LENGTH_MAX && TEXT.test(value) ? value : undefined;

/** A claim that is one text; providers that can name several send a list. */
export function textClaim(claims: JWTPayload, name: string): string | undefined {
  const value = claims[name];
  if (!Array.isArray(value)) return textOf(value);
  return value.length === 1 ? textOf(value[0]) : undefined;
}

/** The client that a token was issued to. */
export function clientOf(claims: JWTPayload): string | undefined {
  return textOf(claims['azp']) ?? textOf(claims['client_id']);
}

/** Whether a claim is a value, or a list with it. */
export function hasClaim(claims: JWTPayload, { claim, value }: { claim: string; value: string }): boolean {
  const given = claims[claim];
  return Array.isArray(given) ? given.includes(value) : given === value;
}

/** Whom a token names; undefined when it names nobody. */
export function personOf(claims: JWTPayload): Person | undefined {
  const sub = textOf(claims.sub);
  return sub === undefined ? undefined : { sub, email: textOf(claims['email']) ?? null };
}
