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
  feature_not_in_plan: { feature: string; plan: string; requiredPlan: string };
}

type FieldsOf<Code> = Code extends keyof ErrorFields ? ErrorFields[Code] : Record<string, unknown>;

/** The error of a failed call. Base decisions on `code` and `retryable`, never on the message. */
export class ChannelTranscriptsError<Code extends string = string> extends Error {
  override readonly name = 'ChannelTranscriptsError';

  constructor(
    message: string,
    /** The HTTP status. */
    readonly status: number,
    /** Stable; `unexpected_answer` when the response is not from the service, but for example from a proxy. */
    readonly code: Code,
    /** Whether a retry can succeed. */
    readonly retryable: boolean,
    /** Identifies the request in the log of the service. */
    readonly requestId: string | undefined,
    /** Seconds to wait before a retry, if the service sent them. */
    readonly retryAfterSeconds: number | undefined,
    /** The additional fields of the error body. */
    readonly fields: FieldsOf<Code>,
  ) {
    super(message);
  }
}

/** Whether a thrown value is an error with this code; its `fields` then have the type of the code. */
export function isErrorWithCode<Code extends ErrorCode>(
  error: unknown,
  code: Code,
): error is ChannelTranscriptsError<Code> {
  return error instanceof ChannelTranscriptsError && error.code === code;
}

/** Converts the parsed body of an error response to an error. */
export function errorOf(response: Response, body: unknown): ChannelTranscriptsError {
  const { status, headers } = response;
  const { code, message, retryable, requestId, ...fields } = objectOf(objectOf(body)['error']);
  const retryAfter = headers.get('Retry-After');
  const retryAfterSeconds = retryAfter !== null && /^[0-9]+$/.test(retryAfter) ? Number(retryAfter) : undefined;
  const id = typeof requestId === 'string' ? requestId : (headers.get('X-Request-Id') ?? undefined);
  if (typeof code === 'string' && typeof message === 'string') {
    return new ChannelTranscriptsError(message, status, code, retryable === true, id, retryAfterSeconds, fields);
  }
  const text = `The response (status ${status}) is not from this service. Check the base URL.`;
  return new ChannelTranscriptsError(text, status, 'unexpected_answer', status >= 500, id, retryAfterSeconds, {});
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
