import { at } from '../response-parsing.js';

/** Why the platform refuses the caller rather than the requested resource. */
export type BlockReason =
  | 'too-many-requests'
  | 'captcha'
  | 'consent'
  | 'empty-body'
  /** Not sent: the egress was blocked while the request was queued. */
  | 'exit-shut';

/** Why a request has no readable response. */
export type FailedResponse =
  | { kind: 'blocked'; reason: BlockReason; retryAfterSeconds: number | null }
  /** Another status than 2xx. */
  | { kind: 'http-error'; status: number; media: Media }
  | { kind: 'timeout' }
  | { kind: 'network'; cause: unknown }
  /** The response is not what was requested. */
  | { kind: 'unreadable'; expected: string };

export type Media = 'json' | 'xml' | 'html' | 'other' | 'empty';

/** The result of one request: a 2xx response with its text, or why there is none. */
export type UpstreamResponse = { kind: 'ok'; media: Media; body: string } | FailedResponse;

/** The result of a request for JSON. */
export type JsonResponse =
  | {
      kind: 'json';
      value: unknown;
      /** It has a field that every complete response has and no mask selects: a mask in the request was ignored. */
      whole: boolean;
    }
  | FailedResponse;

/** The outcome as a label for logs and metrics; it never contains text from the platform. */
export function outcomeOf(response: UpstreamResponse | JsonResponse): string {
  switch (response.kind) {
    case 'ok':
      // A caption URL refuses with an empty body, so it has its own label.
      return response.media === 'empty' ? 'empty' : 'ok';
    case 'json':
      return 'ok';
    case 'blocked':
      return `blocked:${response.reason}`;
    case 'http-error':
      return `http-${response.status}`;
    case 'timeout':
    case 'network':
    case 'unreadable':
      return response.kind;
  }
}

/** Reads a 2xx response as JSON. */
export function parseJson(response: Extract<UpstreamResponse, { kind: 'ok' }>): JsonResponse {
  // A JSON response is never empty: an empty one is a refusal, like the empty body of a caption URL.
  if (response.media === 'empty') return { kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null };
  if (response.media === 'html') return { kind: 'unreadable', expected: 'JSON, not a page' };
  try {
    const value: unknown = JSON.parse(response.body);
    return { kind: 'json', value, whole: at(value, 'responseContext') !== undefined };
  } catch {
    return { kind: 'unreadable', expected: 'whole JSON' };
  }
}
