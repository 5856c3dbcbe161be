import type { components } from './schema.js';

type ErrorBody = components['schemas']['Error'];

/** The error codes of the service. Later versions may add codes. */
export type ErrorCode = ErrorBody['code'];

/** The additional fields of the codes that have any. */
export interface ErrorFields {
  invalid_request: { details: components['schemas']['InvalidField'][] };
  plan_limit_exceeded: {
    limit: number;
    used: number;
    reserved: number;
    required: number;
    resetAt: string;
    scope: string;
  };
  /** Of a subscription or the feed: where one can go on, and how many entries have expired. */
  results_expired: { oldest?: string; expired?: number };
  /** Where one can go on: entries may come a second time. */
  cursor_unknown: { oldest: string };
  /** Of a call about one video: every track that it has. */
  language_unavailable: { captionTracks: components['schemas']['CaptionTrack'][] };
  /** The scope that the call requires: `read` or `write`. */
  scope_missing: { scope: string };
  feature_not_in_plan: { feature: string; plan: string; requiredPlan: string };
}

type FieldsOf<Code> = Code extends keyof ErrorFields ? ErrorFields[Code] : Record<string, unknown>;

/** The error of a failed call. Base decisions on `code` and `retryable`, never on the message. */
export class ChannelTranscriptsError<Code extends string = string> extends Error {
  override readonly name = 'ChannelTranscriptsError';

  constructor(
    message: string,
    /** The HTTP status; undefined without a response, and when the call was a message over TCP or NATS. */
    readonly status: number | undefined,
    /** Stable. Two are of the client: `unexpected_response`, for example of a proxy, and `no_response`, none or not all of it. */
    readonly code: Code,
    /** Whether a retry can succeed. */
    readonly retryable: boolean,
    /** Identifies the request in the log of the service. */
    readonly requestId: string | undefined,
    /** Seconds to wait before a retry, if the service sent them. */
    readonly retryAfterSeconds: number | undefined,
    /** The additional fields of the error body. */
    readonly fields: FieldsOf<Code>,
    /** The address of the section about the code in the documentation of the service; only its path over TCP or NATS. */
    readonly docs?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A `ChannelTranscriptsError` of each code: comparing `code` gives `fields` the type of that code. */
export type KnownError =
  | { [Code in ErrorCode]: ChannelTranscriptsError<Code> }[ErrorCode]
  | ChannelTranscriptsError<'unexpected_response' | 'no_response'>;

/** Whether a thrown value is an error of the service. It also recognizes errors of another copy of this package. */
export function isChannelTranscriptsError(error: unknown): error is KnownError {
  return error instanceof Error && error.name === 'ChannelTranscriptsError' && 'code' in error;
}

/**
 * Converts the parsed body of an error response to an error.
 *
 * @param call the method and URL
 * @param baseUrl the URL of the service, to which `docs` is relative
 */
export function errorOf(call: string, response: Response, body: unknown, baseUrl: string): ChannelTranscriptsError {
  const { status, headers } = response;
  const retryAfter = headers.get('Retry-After');
  const retryAfterSeconds = retryAfter !== null && /^[0-9]+$/.test(retryAfter) ? Number(retryAfter) : undefined;
  const stated = statedError(body, status, retryAfterSeconds, baseUrl);
  if (stated) return stated;
  const message = `The response to ${call} (status ${status}) is not from this service. Check the base URL.`;
  const requestId = headers.get('X-Request-Id') ?? undefined;
  const retryable = status === 429 || status >= 500;
  return new ChannelTranscriptsError(
    message,
    status,
    'unexpected_response',
    retryable,
    requestId,
    retryAfterSeconds,
    {},
  );
}

/** Converts the body of an error, which a message has as well; returns undefined when it is not an error of the service. */
export function statedError(
  body: unknown,
  status?: number,
  retryAfterSeconds?: number,
  baseUrl = '',
): ChannelTranscriptsError | undefined {
  const {
    code,
    message,
    retryable,
    requestId,
    docs,
    retryAfterSeconds: given,
    ...fields
  } = objectOf(objectOf(body)['error']);
  if (typeof code !== 'string' || typeof message !== 'string') return undefined;
  const id = typeof requestId === 'string' ? requestId : undefined;
  const seconds = typeof given === 'number' ? given : retryAfterSeconds;
  const page = typeof docs === 'string' ? baseUrl + docs : undefined;
  return new ChannelTranscriptsError(message, status, code, retryable === true, id, seconds, fields, page);
}

/** The error of a call without a complete response: the connection failed or was lost, or `token` threw. */
export function noResponseError(message: string, cause?: unknown): ChannelTranscriptsError<'no_response'> {
  return new ChannelTranscriptsError(message, undefined, 'no_response', true, undefined, undefined, {}, undefined, {
    cause,
  });
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
