import type { Plan } from './plan.js';

/** The API key of a call and its organization. */
export interface Caller {
  keyId: string;
  organization: { id: string; name: string; plan: Plan };
}

/** The operator who makes a change, as the audit trail names them. */
export interface Actor {
  /** `admin` over HTTP with the admin token, `cli` by a command. */
  kind: 'admin' | 'cli';
  /** The ID of the HTTP request, which the operator may choose; null for a command. */
  requestId: string | null;
  /** The ID that the service gave the request; null for a command. */
  callId: string | null;
  /** The address that the request came from; null for a command. */
  address: string | null;
}

/** The operator who runs a command. */
export const CLI_ACTOR: Actor = { kind: 'cli', requestId: null, callId: null, address: null };
