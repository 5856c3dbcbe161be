import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { FuzzRequest } from './fuzz-request.js';

export interface FuzzResponse {
  status: number;
  /** By lower-case name. */
  headers: ReadonlyMap<string, readonly string[]>;
  body: Buffer;
  /** False when the connection ended before the response was complete. */
  whole: boolean;
}

/** The result of a request. */
export interface Exchange {
  response: FuzzResponse | undefined;
  /** Why there is no response. */
  fault: string | undefined;
  ms: number;
}

/** The decompressed body of a response. @throws when it is labelled gzip but is not */
export function textOf({ headers, body }: FuzzResponse): string {
  return (headers.get('content-encoding')?.[0] === 'gzip' ? gunzipSync(body) : body).toString();
}

/** Sends a request on a connection of its own. */
export function exchange(port: number, fuzzRequest: FuzzRequest, responseMsMax: number): Promise<Exchange> {
  const { method, target, headers, body, leaves } = fuzzRequest;
  const startedAtMs = performance.now();
  return new Promise((resolve) => {
    const end = (response: FuzzResponse | undefined, fault?: string): void => {
      clearTimeout(timer);
      resolve({ response, fault, ms: performance.now() - startedAtMs });
    };
    // Node writes each character as a byte.
    const path = Buffer.from(target).toString('latin1');
    const written = headers.flatMap(([name, value]) => [name, Buffer.from(value, 'latin1').toString('latin1')]);
    const sent = request({ host: '127.0.0.1', port, agent: false, method, path, headers: written }, (response) => {
      const chunks: Buffer[] = [];
      const close = (): void => {
        const received = Object.entries(response.headersDistinct).map(([name, values = []]) => [name, values] as const);
        const { statusCode: status = 0, complete: whole } = response;
        end({ status, headers: new Map(received), body: Buffer.concat(chunks), whole });
      };
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('close', close);
      response.on('error', () => undefined);
    });
    const timer = setTimeout(() => {
      end(undefined, `no end within ${responseMsMax} ms`);
      sent.destroy();
    }, responseMsMax);
    sent.on('error', (error) => end(undefined, error.message));
    sent.end(body, () => {
      if (!leaves) return;
      sent.destroy();
      end(undefined);
    });
  });
}
