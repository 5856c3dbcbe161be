import { gunzipSync } from 'node:zlib';

/** A raw response with joined chunks. */
export interface RawResponse {
  status: number;
  /** By lower-case name, in order. */
  headers: ReadonlyMap<string, readonly string[]>;
  body: Buffer;
  /** False when the connection ended before the response was complete. */
  whole: boolean;
}

/** The decompressed body of a response. @throws when it is labelled gzip but is not */
export function textOf({ headers, body }: RawResponse): string {
  return (headers.get('content-encoding')?.[0] === 'gzip' ? gunzipSync(body) : body).toString();
}

/** Parses the responses on one connection; stricter than any client. */
export class ResponseReader {
  readonly responses: RawResponse[] = [];
  /** Why the received bytes are not HTTP. */
  fault: string | undefined;
  private rest: Buffer = Buffer.alloc(0);

  /** @param methods of the requests in order, since a response to HEAD has no body */
  constructor(private readonly methods: readonly string[]) {}

  push(chunk: Buffer): void {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    while (this.fault === undefined && this.readOne(false));
  }

  /** The connection has ended: the rest is a response without a length, or a truncated one. */
  end(): void {
    while (this.fault === undefined && this.rest.length > 0 && this.readOne(true));
  }

  private readOne(ended: boolean): boolean {
    const headEnd = this.rest.indexOf('\r\n\r\n');
    if (headEnd < 0) {
      if (ended) this.fault = `a response that ends in its headers: ${shown(this.rest)}`;
      return false;
    }
    const lines = this.rest.subarray(0, headEnd).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 ([1-5][0-9]{2}) /.exec(`${lines[0]} `)?.[1] ?? Number.NaN);
    const headers = headersOf(lines.slice(1));
    if (Number.isNaN(status) || !headers) {
      this.fault = `not a response: ${shown(this.rest)}`;
      return false;
    }
    const after = this.rest.subarray(headEnd + 4);
    if (status < 200) {
      this.rest = after;
      return true;
    }
    const read = this.bodyOf(status, headers, after, ended);
    if (!read) return false;
    // Node refuses before it knows that the method is HEAD; the connection ends then.
    const refusedHead = status === 400 && this.methods[this.responses.length] === 'HEAD';
    if (refusedHead && headers.get('connection')?.[0] === 'close') read.bytes = after.length;
    this.responses.push({ status, headers, body: read.body, whole: read.whole });
    this.rest = after.subarray(read.bytes);
    return true;
  }

  private bodyOf(
    status: number,
    headers: ReadonlyMap<string, string[]>,
    bytes: Buffer,
    ended: boolean,
  ): { body: Buffer; bytes: number; whole: boolean } | undefined {
    if (status === 204 || status === 304 || this.methods[this.responses.length] === 'HEAD') {
      return { body: Buffer.alloc(0), bytes: 0, whole: true };
    }
    const length = headers.get('content-length')?.[0];
    if (headers.get('transfer-encoding')?.[0] === 'chunked') return this.chunked(bytes, ended);
    const due = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
    if (bytes.length >= due) return { body: bytes.subarray(0, due), bytes: due, whole: true };
    return ended ? { body: bytes, bytes: bytes.length, whole: length === undefined } : undefined;
  }

  private chunked(bytes: Buffer, ended: boolean): { body: Buffer; bytes: number; whole: boolean } | undefined {
    const pieces: Buffer[] = [];
    let at = 0;
    for (;;) {
      const lineEnd = bytes.indexOf('\r\n', at);
      const size = lineEnd < 0 ? Number.NaN : Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
      const next = lineEnd + 2 + size + 2;
      if (Number.isNaN(size) || bytes.length < next) {
        return ended ? { body: Buffer.concat(pieces), bytes: bytes.length, whole: false } : undefined;
      }
      if (size === 0) return { body: Buffer.concat(pieces), bytes: next, whole: true };
      pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
      at = next;
    }
  }
}

function headersOf(lines: readonly string[]): Map<string, string[]> | undefined {
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    headers.set(name.toLowerCase(), [...(headers.get(name.toLowerCase()) ?? []), value]);
  }
  return headers;
}

function shown(bytes: Buffer): string {
  return JSON.stringify(bytes.subarray(0, 80).toString('latin1'));
}
