import type { Credential } from './credentials.js';

/** A request with exactly these headers. */
export interface Draft {
  method: string;
  target: string;
  headers: [name: string, value: string][];
  body?: Buffer;
}

export interface FuzzRequest extends Draft {
  /** Its row in the report. */
  kind: string;
  credential: Credential;
  /** Whether the client leaves without waiting for the response. */
  leaves: boolean;
}

export function describe({ kind, method, target, credential, headers }: FuzzRequest): string {
  return `${kind}: ${method} ${target} by ${credential.name}, ${JSON.stringify(headers)}`.slice(0, 400);
}
