import type { components } from './schema.js';

type ErrorBody = components['schemas']['Error'];

/** Every code that the service gives; one that is newer than this client is possible all the same. */
export type ErrorCode = ErrorBody['code'];

/** What stands beside `code` and `message`, for the codes that say more. */
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

/** A call that the service refused or could not answer. Decide by `code` and `retryable`, never by the message. */
export class ChannelTranscriptsError<Code extends string = string> extends Error {
  override readonly name = 'ChannelTranscriptsError';

  constructor(
    message: string,
    /** The HTTP status. */
    readonly status: number,
    /** Stable; `unexpected_answer` when the answer was not the service's, but perhaps a proxy's. */
    readonly code: Code,
    /** Whether the same call can succeed later. */
    readonly retryable: boolean,
    /** Leads to the request in the log of the service. */
    readonly requestId: string | undefined,
    /** How long to wait before the next try, if the service said so. */
    readonly retryAfterSeconds: number | undefined,
    /** What stands beside `code` and `message` in the body. */
    readonly fields: FieldsOf<Code>,
  ) {
    super(message);
  }
}

/** Whether something that was thrown is the error with this code; then its `fields` are those of the code. */
export function isErrorWithCode<Code extends ErrorCode>(
  error: unknown,
  code: Code,
): error is ChannelTranscriptsError<Code> {
  return error instanceof ChannelTranscriptsError && error.code === code;
}

/** The error that an answer tells, read from its parsed body. */
export function errorOf(response: Response, body: unknown): ChannelTranscriptsError {
  const { status, headers } = response;
  const { code, message, retryable, requestId, ...fields } = objectOf(objectOf(body)['error']);
  const retryAfter = headers.get('Retry-After');
  const retryAfterSeconds = retryAfter !== null && /^[0-9]+$/.test(retryAfter) ? Number(retryAfter) : undefined;
  const id = typeof requestId === 'string' ? requestId : (headers.get('X-Request-Id') ?? undefined);
  if (typeof code === 'string' && typeof message === 'string') {
    return new ChannelTranscriptsError(message, status, code, retryable === true, id, retryAfterSeconds, fields);
  }
  const text = `The answer (${status}) has not the form of this service: is the base URL right?`;
  return new ChannelTranscriptsError(text, status, 'unexpected_answer', status >= 500, id, retryAfterSeconds, {});
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
