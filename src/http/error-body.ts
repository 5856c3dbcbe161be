import type { ErrorCode, ErrorFields } from '../domain/errors.js';

/** The one envelope of every error answer. */
export interface ErrorBody {
  error: { code: ErrorCode; message: string; retryable: boolean; requestId: string } & ErrorFields;
}

export function errorBody(
  error: { code: ErrorCode; message: string; retryable: boolean; fields?: ErrorFields },
  requestId: string,
): ErrorBody {
  return {
    error: { code: error.code, message: error.message, retryable: error.retryable, requestId, ...error.fields },
  };
}
