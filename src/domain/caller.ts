import type { Plan } from './plan.js';

/** What a key or a token may do: `read` without changing anything, and `write` what is changed. */
export const SCOPES = ['read', 'write'] as const;
export type Scope = (typeof SCOPES)[number];

/** The name of a scope in the tokens of an identity provider, which serves other services too. */
export const tokenScope = (scope: Scope): string => `transcripts:${scope}`;

/** The API key or the token client of a call and its organization. */
export interface Caller {
  /** Of the row in `api_keys`, which has the clients of the identity provider as well. */
  keyId: string;
  kind: 'key' | 'client';
  scopes: readonly Scope[];
  organization: { id: string; name: string; plan: Plan; /** Whether its library has texts. */ keeps?: boolean };
}

/** Whom a token of the identity provider names. */
export interface Person {
  sub: string;
  email: string | null;
}

/** Who makes a change, as the audit trail names them. */
export interface Actor {
  /** An operator, over HTTP or by a command, or a caller. */
  kind: 'admin' | 'cli' | Caller['kind'];
  /** Of a caller; null for an operator. */
  keyId: string | null;
  /** The ID of the request, which the caller may choose; null for a command. */
  requestId: string | null;
  /** The ID that the service gave the request; null for a command. */
  callId: string | null;
  /** The address that the request came from; null for a command. */
  address: string | null;
  /** Who made a change with a token of the identity provider; null with the admin token or by a command. */
  person: Person | null;
}

/** The operator who runs a command. */
export const CLI_ACTOR: Actor = {
  ...{ kind: 'cli', keyId: null, requestId: null },
  ...{ callId: null, address: null, person: null },
};
