import type { OwnError } from '../http/error-docs.js';

/** The refusals of the limits for the OpenAPI document, beside the ordinary `rate_limited`. */
export const TOO_MANY_FAILURES: OwnError = {
  code: 'rate_limited',
  title: 'Too many requests without a valid key from this address',
  message: 'Too many requests from this address had no valid API key. With one, a request is answered at once.',
  retryable: true,
};

export const TOO_MANY_ADMIN_FAILURES: OwnError = {
  code: 'rate_limited',
  title: 'Too many requests without the admin token from this address',
  message: 'Too many requests from this address had no valid admin token. With one, a request is answered at once.',
  retryable: true,
};

export const TOO_MANY_AT_ONCE: OwnError = {
  code: 'rate_limited',
  title: 'Too many calls by this key at once',
  message: 'Concurrency limit of 10 requests for this key reached. Retry when a running request has ended.',
  retryable: true,
};

export const SERVICE_BUSY: OwnError = {
  code: 'service_unavailable',
  title: 'Too many calls are in flight',
  message: 'The service is at capacity. Nothing was charged. Retry shortly.',
  retryable: true,
};
