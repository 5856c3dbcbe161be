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

export interface Sending {
  headers?: Record<string, string | string[]> | string[] | undefined;
  body?: string | Buffer | undefined;
  timeoutMs?: number | undefined;
  /** The source address of the request, any of 127.0.0.0/8. */
  from?: string;
  /** Called with the received text of the body each time more of it arrives. */
  onText?: (text: string) => void;
}

/** Sends one request on a connection of its own, with the path unchanged. Rejects when there is no response. */
export function send(
  base: string,
  method: string,
  path: string,
  { headers = {}, body, timeoutMs = 120_000, from: localAddress, onText }: Sending = {},
): Promise<HttpResponse> {
  const { hostname, port } = new URL(base);
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { hostname, port, method, path, headers, agent: false, signal, localAddress };
  const startedAtMs = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        onText?.(Buffer.concat(chunks).toString());
      });
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
