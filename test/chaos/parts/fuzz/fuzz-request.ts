import type { Credential } from './credentials.js';

/** What is sent over one connection. */
export interface FuzzRequest {
  /** For the table. */
  kind: string;
  bytes: Buffer;
  /** Of the requests in it, in their order. */
  methods: readonly string[];
  /** The addresses asked for, where the bytes say it plainly. */
  targets?: readonly string[];
  credential?: Credential;
  /** Whether the bytes are whole requests, so that there is exactly one answer to each. */
  whole: boolean;
  /** How many answers have to come. */
  responsesMin: number;
  /** The client closes its side when nothing comes for a while, or goes away without waiting. */
  disconnects?: 'when silent' | 'at once';
}

/** One request, not yet written down. */
export interface Draft {
  method: string;
  target: string;
  headers: [name: string, value: string][];
  body?: Buffer;
}

/** The bytes of a request, as its headers have it: nothing is added, not even a length. */
export function written({ method, target, headers, body }: Draft): Buffer {
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\n`),
    // A header is bytes; what is above 255 has no place in it.
    Buffer.from(`${head}\r\n`, 'latin1'),
    body ?? Buffer.alloc(0),
  ]);
}
