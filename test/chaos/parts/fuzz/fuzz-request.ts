import type { Credential } from './credentials.js';

/** The bytes sent over one connection. */
export interface FuzzRequest {
  /** Its row in the report. */
  kind: string;
  bytes: Buffer;
  /** The methods of its requests, in order. */
  methods: readonly string[];
  /** The request targets, when they are unambiguous. */
  targets?: readonly string[];
  credential?: Credential;
  /** Whether the bytes are complete requests, so that each has exactly one response. */
  whole: boolean;
  /** The number of required responses. */
  responsesMin: number;
  /** Whether the client closes its side after a while without data, or disconnects without waiting. */
  disconnects?: 'when silent' | 'at once';
}

/** A request before serialization. */
export interface Draft {
  method: string;
  target: string;
  headers: [name: string, value: string][];
  body?: Buffer;
}

/** Serializes a request with exactly its headers; not even a length is added. */
export function written({ method, target, headers, body }: Draft): Buffer {
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\n`),
    // Headers are bytes; characters above 255 cannot be sent.
    Buffer.from(`${head}\r\n`, 'latin1'),
    body ?? Buffer.alloc(0),
  ]);
}
