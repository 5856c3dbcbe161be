import type { Plan } from './plan.js';

/** The API key or the token client of a call and its organization. */
export interface Caller {
  /** Of the row in `api_keys`, which has the clients of the identity provider as well. */
  keyId: string;
  organization: { id: string; name: string; plan: Plan };
}

/** Whom a token of the identity provider names. */
export interface Person {
  sub: string;
  email: string | null;
}

/** The operator who makes a change, as the audit trail names them. */
export interface Actor {
  /** `admin` over HTTP, `cli` by a command. */
  kind: 'admin' | 'cli';
  /** The ID of the HTTP request, which the operator may choose; null for a command. */
  requestId: string | null;
  /** The ID that the service gave the request; null for a command. */
  callId: string | null;
  /** The address that the request came from; null for a command. */
  address: string | null;
  /** Who made a change with a token of the identity provider; null with the admin token or by a command. */
  person: Person | null;
}

/** The operator who runs a command. */
export const CLI_ACTOR: Actor = { kind: 'cli', requestId: null, callId: null, address: null, person: null };
