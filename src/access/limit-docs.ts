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
  message:
    'This key has 10 calls in flight, which is as many as it may have at once. Try again when one of them has ended.',
  retryable: true,
};

export const SERVICE_BUSY: OwnError = {
  code: 'service_unavailable',
  title: 'Too many calls are in flight',
  message: 'The service has as many calls in flight as it takes on. Nothing was charged. Try again.',
  retryable: true,
};
