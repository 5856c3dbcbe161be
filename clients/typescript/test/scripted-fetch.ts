import type { Pause } from '../src/http.js';

/** A request that the client sent. */
export interface SentRequest {
  method: string;
  path: string;
  headers: Headers;
  body: unknown;
}

/** A service that answers with one step after another, of which the last is repeated; an error is a lost connection. */
export function scripted(...steps: (Response | Error | ((sent: SentRequest) => Response))[]) {
  const sent: SentRequest[] = [];
  const pauses: number[] = [];
  const wait: Pause = (seconds) => Promise.resolve(void pauses.push(seconds));
  const fetch = (url: string, { method, headers, body }: RequestInit): Promise<Response> => {
    const request: SentRequest = {
      method: method ?? '',
      path: url.replace('http://service.test', ''),
      headers: new Headers(headers),
      body: typeof body === 'string' ? (JSON.parse(body) as unknown) : undefined,
    };
    sent.push(request);
    const step = steps.length > 1 ? steps.shift() : steps[0];
    if (step === undefined) throw new Error('The test has no answer.');
    if (step instanceof Error) return Promise.reject(step);
    return Promise.resolve(step instanceof Response ? step.clone() : step(request));
  };
  return { options: { baseUrl: 'http://service.test', apiKey: 'ctk_test', fetch }, wait, sent, pauses };
}

export const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  Response.json(body, { status, headers });

/** An error body of the service. */
export function refusal(status: number, code: string, retryable: boolean, retryAfterSeconds?: number): Response {
  const error = { code, message: `Refused: ${code}.`, retryable, requestId: 'request-1' };
  return json({ error }, status, retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) });
}

export const unavailable = (retryAfterSeconds?: number): Response =>
  refusal(503, 'service_unavailable', true, retryAfterSeconds);
/** As `fetch` throws it. */
export const lost = new TypeError('fetch failed', {
  cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
});
