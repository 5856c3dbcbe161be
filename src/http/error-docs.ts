import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiResponse, type ApiResponseOptions, getSchemaPath } from '@nestjs/swagger';
import {
  ChannelNotFoundError,
  ConcurrencyLimitReachedError,
  DatabaseUnavailableError,
  FeatureNotInPlanError,
  InternalError,
  InvalidApiKeyError,
  InvalidRequestError,
  MethodNotAllowedError,
  PlanLimitExceededError,
  PlaylistNotFoundError,
  RequestRateExceededError,
  RouteNotFoundError,
  ServiceAtCapacityError,
  TooManyFailedAuthenticationsError,
  UnauthorizedError,
  UpstreamError,
  VideoNotFoundError,
  type DomainError,
} from '../domain/errors.js';
import { errorBody, ErrorBodyDto } from './error-body.js';
import { bodyTooLarge, unsupportedBody } from './json-body.js';
import { QUOTA_HEADERS, RATE_LIMIT_HEADERS } from './limit-headers.js';
import { REQUEST_ID_HEADER } from './response-docs.js';

const INVALID_REQUEST = 'A parameter or a field is invalid';
const REQUEST_ID = '3f0c2f5e-8a1b-4c55-9f5e-0d8f1a7c6b21';

/** An error of an operation in the OpenAPI document. Code, message and fields are those of the error that is thrown. */
export interface ErrorExample {
  title: string;
  error: DomainError;
}

/** The errors that more than one operation has. */
const EXAMPLES = {
  invalid_request: { title: INVALID_REQUEST, error: unknownParameter('page') },
  unauthorized: { title: 'The API key is missing', error: new UnauthorizedError() },
  invalid_api_key: { title: 'The API key is invalid', error: new InvalidApiKeyError() },
  failed_authentications: {
    title: 'Too many requests without a valid API key from this address',
    error: new TooManyFailedAuthenticationsError('API key', 42),
  },
  failed_admin_authentications: {
    title: 'Too many requests without a valid admin token from this address',
    error: new TooManyFailedAuthenticationsError('admin token', 42),
  },
  plan_limit_exceeded: {
    title: 'The request could exceed the monthly quota',
    error: new PlanLimitExceededError(
      {
        limit: 5000,
        used: 4993,
        reserved: 0,
        resetAt: new Date('2026-12-01T00:00:00Z'),
        asOf: new Date('2026-11-20T16:00:00Z'),
      },
      25,
      7,
    ),
  },
  feature_not_in_plan: {
    title: 'The plan does not include channel transcripts',
    error: new FeatureNotInPlanError('channel_transcripts', 'free', 'pro'),
  },
  channel_not_found: { title: 'The channel does not exist', error: new ChannelNotFoundError() },
  video_not_found: { title: 'The text is not a reference to a video', error: new VideoNotFoundError() },
  playlist_not_found: { title: 'The playlist does not exist', error: new PlaylistNotFoundError() },
  playlist_private: { title: 'The playlist is private', error: new PlaylistNotFoundError('private') },
  body_too_large: { title: 'The body is too large', error: bodyTooLarge() },
  body_not_json: { title: 'The body is not JSON', error: unsupportedBody() },
  not_found: { title: 'The endpoint does not exist', error: new RouteNotFoundError() },
  method_not_allowed: { title: 'The endpoint does not support the method', error: new MethodNotAllowedError('GET') },
  rate_limited: { title: 'The rate limit of the API key is exceeded', error: new RequestRateExceededError(60, 12) },
  concurrency_limited: {
    title: 'The API key has too many requests for transcripts, uploads and job results in progress',
    error: new ConcurrencyLimitReachedError(10, 2),
  },
  internal_error: { title: 'An unexpected error occurred', error: new InternalError() },
  upstream_failure: { title: 'YouTube could not be read', error: new UpstreamError('upstream_failure') },
  upstream_blocked: { title: 'YouTube blocks the service', error: new UpstreamError('upstream_blocked') },
  upstream_busy: {
    title: 'The queue to YouTube is too long for the deadline',
    error: new UpstreamError('upstream_busy', undefined, 40),
  },
  service_unavailable: {
    title: 'The database is unavailable, or the service is shutting down',
    error: new DatabaseUnavailableError(5),
  },
  at_capacity: {
    title: 'The service has too many requests for transcripts, uploads and job results in progress',
    error: new ServiceAtCapacityError(2),
  },
  upstream_timeout: { title: 'YouTube did not respond in time', error: new UpstreamError('upstream_timeout') },
} satisfies Record<string, ErrorExample>;

/** The errors of every operation with an API key. */
export const KEY_ERRORS = [
  'unauthorized',
  'invalid_api_key',
  'method_not_allowed',
  'rate_limited',
  'failed_authentications',
  'internal_error',
  'service_unavailable',
] as const;

/** The further errors of an operation that reads a body. */
export const BODY_ERRORS = ['body_too_large', 'body_not_json'] as const;

/** The error of a parameter or a body field that fails validation. */
export function invalidField(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError([{ field, message }]);
}

export function unknownParameter(name: string): InvalidRequestError {
  return invalidField(name, `"${name}" is not a parameter of this operation.`);
}

/** Documents the errors of an operation: one response per status, with an example of each error. */
export function ApiErrors(
  ...errors: (keyof typeof EXAMPLES | ErrorExample | InvalidRequestError)[]
): MethodDecorator & ClassDecorator {
  const byStatus = new Map<number, ErrorExample[]>();
  for (const given of errors) {
    const example = exampleOf(given);
    const { status } = example.error;
    byStatus.set(status, [...(byStatus.get(status) ?? []), example]);
  }
  return applyDecorators(
    ApiExtraModels(ErrorBodyDto),
    ...[...byStatus].map(([status, examples]) => apiErrorResponse(status, examples)),
  );
}

function exampleOf(given: keyof typeof EXAMPLES | ErrorExample | InvalidRequestError): ErrorExample {
  if (typeof given === 'string') return EXAMPLES[given];
  return given instanceof InvalidRequestError ? { title: INVALID_REQUEST, error: given } : given;
}

const text = (description: string) => ({ description, schema: { type: 'string' as const } });

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait before a retry.', schema: { type: 'integer' as const } },
};

/** The headers of error responses by status, besides the ID of the request. */
const HEADERS: Readonly<Record<number, NonNullable<ApiResponseOptions['headers']>>> = {
  401: { 'WWW-Authenticate': text('`Bearer`') },
  402: { ...RATE_LIMIT_HEADERS, ...QUOTA_HEADERS },
  405: { Allow: text('The methods that the endpoint supports.') },
  429: { ...RETRY_AFTER, ...RATE_LIMIT_HEADERS },
  503: RETRY_AFTER,
};

function apiErrorResponse(status: number, examples: readonly ErrorExample[]): MethodDecorator & ClassDecorator {
  const codes = examples.map(({ error }) => error.code);
  return ApiResponse({
    status,
    description: examples.map(({ title, error }) => `\`${error.code}\`: ${title}.`).join(' '),
    headers: { ...REQUEST_ID_HEADER, ...HEADERS[status] },
    content: {
      'application/json': {
        schema: { $ref: getSchemaPath(ErrorBodyDto) },
        examples: Object.fromEntries(
          examples.map(({ title, error }, index) => {
            const { code } = error;
            const name = codes.indexOf(code) === index ? code : `${code}_${index + 1}`;
            return [name, { summary: title, value: errorBody(error, REQUEST_ID) }];
          }),
        ),
      },
    },
  });
}
