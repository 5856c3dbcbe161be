import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';

/** An HTTP response. */
export interface HttpResponse {
  status: number;
  headers: IncomingHttpHeaders;
  /** The body as it was sent, which may be compressed; `text` and `body` are of one that is not. */
  bytes: Buffer;
  text: string;
  /** Undefined unless it is JSON. */
  body: unknown;
  /** False when the connection broke within the body. */
  whole: boolean;
  /** Milliseconds until its end. */
  ms: number;
}

interface Sending {
  headers?: Record<string, string | string[]> | string[] | undefined;
  body?: string | Buffer | undefined;
  timeoutMs?: number | undefined;
}

/** Sends one request on a connection of its own, with the path unchanged. Rejects when there is no response. */
export function send(
  base: string,
  method: string,
  path: string,
  { headers = {}, body, timeoutMs = 120_000 }: Sending = {},
): Promise<HttpResponse> {
  const { hostname, port } = new URL(base);
  const options = { hostname, port, method, path, headers, agent: false, signal: AbortSignal.timeout(timeoutMs) };
  const startedAtMs = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => undefined);
      response.once('close', () => {
        const { statusCode: status = 0, headers: received, complete: whole } = response;
        const bytes = Buffer.concat(chunks);
        const text = bytes.toString();
        const ms = performance.now() - startedAtMs;
        resolve({ status, headers: received, bytes, text, body: parseJson(text), whole, ms });
      });
    });
    // A request can fail twice: after the first error its connection can still be reset.
    request.on('error', reject);
    request.end(body);
  });
}

/** Undefined unless it is JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
