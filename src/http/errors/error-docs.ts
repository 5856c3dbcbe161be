import { applyDecorators } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiParam, type ApiResponseOptions, type OpenAPIObject } from '@nestjs/swagger';
import { ERRORS } from '../../domain/error-codes.js';
import {
  ChannelNotFoundError,
  ConcurrencyLimitReachedError,
  DatabaseUnavailableError,
  InternalError,
  InvalidApiKeyError,
  invalidField,
  PlanLimitExceededError,
  PlaylistNotFoundError,
  RequestRateExceededError,
  ScopeMissingError,
  ServiceAtCapacityError,
  TooManyFailedAuthenticationsError,
  UpstreamError,
  VideoNotFoundError,
  DomainError,
  type QuotaState,
} from '../../domain/errors.js';
import { MethodNotAllowedError, UnauthorizedError } from './http-errors.js';
import { errorBody, ErrorBodyDto } from './error-body.js';
import { bodyTooLarge, METHODS_WITH_BODY, unsupportedBody } from '../routes/declared-input.js';
import { QUOTA_HEADERS, RATE_LIMIT_HEADERS } from '../routes/limit-headers.js';
import { refTo } from '../routes/response-docs.js';
import type { Declared, Route } from '../routes/routes.js';

const REQUEST_ID = '3f0c2f5e-8a1b-4c55-9f5e-0d8f1a7c6b21';

/** An error of an operation in the OpenAPI document. Code, message and fields are those of the error that is thrown. */
export interface ErrorExample {
  title: string;
  error: DomainError;
}

const QUOTA: QuotaState = {
  limit: 5000,
  used: 4993,
  reserved: 0,
  resetAt: new Date('2026-12-01T00:00:00Z'),
  asOf: new Date('2026-11-20T16:00:00Z'),
};

function exampleOf(error: DomainError): ErrorExample {
  const stated = ERRORS[error.code];
  return { title: 'title' in stated ? stated.title : error.message, error };
}

const EXAMPLES = {
  invalid_request: exampleOf(invalidField('page', '"page" is not a parameter of this operation.')),
  unauthorized: exampleOf(new UnauthorizedError()),
  invalid_api_key: exampleOf(new InvalidApiKeyError('revoked')),
  read_scope_missing: {
    title: 'The API key or the access token may not read',
    error: new ScopeMissingError('read', 'client'),
  },
  write_scope_missing: {
    title: 'The API key or the access token may read only',
    error: new ScopeMissingError('write', 'key'),
  },
  plan_limit_exceeded: exampleOf(new PlanLimitExceededError(QUOTA, 25, 7)),
  key_limit_exceeded: {
    title: 'The request could exceed the monthly limit of the API key',
    error: new PlanLimitExceededError({ ...QUOTA, key: { limit: 500, used: 497, reserved: 0 } }, 25, 3),
  },
  channel_not_found: exampleOf(new ChannelNotFoundError()),
  video_not_found: exampleOf(new VideoNotFoundError()),
  playlist_not_found: exampleOf(new PlaylistNotFoundError()),
  playlist_private: { title: 'The playlist is private', error: new PlaylistNotFoundError('private') },
  body_not_json: { title: 'The body is not JSON', error: unsupportedBody() },
  method_not_allowed: exampleOf(new MethodNotAllowedError('GET')),
  rate_limited: exampleOf(new RequestRateExceededError(60, 12)),
  concurrency_limited: {
    title: 'The API key or its organization has too many requests for transcripts, uploads and job results in progress',
    error: new ConcurrencyLimitReachedError(10, 2),
  },
  failed_authentications: {
    title: 'Too many requests without a valid API key from this address',
    error: new TooManyFailedAuthenticationsError('API key', 42),
  },
  failed_admin_authentications: {
    title: 'Too many requests without a valid admin token from this address',
    error: new TooManyFailedAuthenticationsError('admin token', 42),
  },
  internal_error: exampleOf(new InternalError()),
  upstream_failure: exampleOf(new UpstreamError('upstream_failure')),
  upstream_blocked: exampleOf(new UpstreamError('upstream_blocked')),
  service_unavailable: exampleOf(new DatabaseUnavailableError(5)),
  at_capacity: {
    title: 'The service has too many requests for transcripts, uploads and job results in progress',
    error: new ServiceAtCapacityError(2),
  },
  upstream_busy: exampleOf(new UpstreamError('upstream_busy', undefined, 40)),
  upstream_timeout: exampleOf(new UpstreamError('upstream_timeout')),
} satisfies Record<string, ErrorExample>;

type DocumentedError = keyof typeof EXAMPLES | ErrorExample | DomainError;

const DOCUMENTED = 'documented-errors';

/**
 * The errors that a guard, a controller or a handler adds to its operations: a common one by its name, or an error with the title of
 * its code or a more exact one. Those of the parameters, the body and the method follow from the route.
 */
export function ApiErrors(...errors: DocumentedError[]): MethodDecorator & ClassDecorator {
  return <T>(target: object, _name?: string | symbol, handler?: TypedPropertyDescriptor<T>): void => {
    const subject = (handler?.value ?? target) as Declared;
    Reflect.defineMetadata(DOCUMENTED, [...errors, ...documentedBy(subject)], subject);
  };
}

/** Documents the ID in the path of an operation, and its 404. */
export function ApiId(description: string, example: string, notFound: ErrorExample, name = 'id'): MethodDecorator {
  const schema = { type: 'string' as const, example };
  return applyDecorators(ApiParam({ name, description, schema }), ApiErrors(notFound));
}

const reflector = new Reflector();

function documentedBy(subject: Declared): readonly DocumentedError[] {
  return reflector.get<readonly DocumentedError[] | undefined>(DOCUMENTED, subject) ?? [];
}

/**
 * Adds to the operations what follows from their routes: the headers of the responses, and the errors, as a response for each status
 * that an operation does not describe itself.
 */
export function describeRoutes({ paths, components = {} }: OpenAPIObject, routes: readonly Route[]): void {
  components.headers = { ...REQUEST_ID_HEADER, ...RATE_LIMIT_HEADERS };
  for (const route of routes) {
    const { responses, requestBody, parameters = [] } = paths[route.path]?.[route.method.toLowerCase() as 'get'] ?? {};
    if (!responses) continue;
    addBodyExample(requestBody, components);
    // What a body has as a list or as text is text in a query.
    for (const parameter of parameters)
      if ('schema' in parameter && parameter.schema && 'oneOf' in parameter.schema)
        parameter.schema = { type: 'string' };
    const errors = errorsOf(route);
    for (const status of new Set(errors.map(({ error }) => error.status))) {
      const examples = errors.filter(({ error }) => error.status === status);
      responses[status] ??= errorResponse(status, examples);
    }
    const limits = errors.includes(EXAMPLES.rate_limited) ? shared(RATE_LIMIT_HEADERS) : {};
    for (const [status, response] of Object.entries(responses)) {
      if (!response || '$ref' in response) continue;
      // These two are sent before the key is verified.
      const common = ['401', '405'].includes(status) ? {} : limits;
      response.headers = { ...shared(REQUEST_ID_HEADER), ...common, ...response.headers };
    }
  }
}

type Components = NonNullable<OpenAPIObject['components']>;
type RequestBody = NonNullable<Components['requestBodies']>[string];

/**
 * Gives a body the example of its required fields. Swagger UI sends the example, and without one a value that it makes up for every
 * field.
 */
function addBodyExample(body: RequestBody | undefined, { schemas = {} }: Components): void {
  const json = body && 'content' in body ? body.content['application/json'] : undefined;
  const schema = json?.schema && '$ref' in json.schema ? schemas[json.schema.$ref.split('/').at(-1) ?? ''] : undefined;
  if (!json || json.examples || !schema || '$ref' in schema) return;
  const { required = [], properties = {} } = schema;
  json.example = Object.fromEntries(
    required.map((name) => [name, { example: undefined, ...properties[name] }.example]),
  );
}

/** The common errors in the order of their list, then those that only this operation has. */
function errorsOf({ declaredBy, method, query, bodyBytesMax, scope }: Route): ErrorExample[] {
  const otherScope = scope === 'read' ? 'write_scope_missing' : 'read_scope_missing';
  const documented = [...new Set(declaredBy.flatMap(documentedBy))].filter((error) => error !== otherScope);
  const common: unknown[] = ['method_not_allowed', ...documented];
  const own = documented.flatMap((given) => {
    if (typeof given === 'string') return [];
    return given instanceof DomainError ? exampleOf(given) : given;
  });
  if (METHODS_WITH_BODY.includes(method)) {
    common.push('body_not_json');
    own.push({ title: 'The body is too large', error: bodyTooLarge(bodyBytesMax) });
  }
  if (query !== 'any' && !own.some(({ title }) => title === EXAMPLES.invalid_request.title))
    common.push('invalid_request');
  return [...Object.entries(EXAMPLES).flatMap(([name, example]) => (common.includes(name) ? example : [])), ...own];
}

const text = (description: string) => ({ description, schema: { type: 'string' as const } });

const REQUEST_ID_HEADER = { 'X-Request-Id': text('The ID of the request.') };

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait before a retry.', schema: { type: 'integer' as const } },
};

/** Headers of many responses, which refer to one description. */
const shared = (headers: object) =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** The headers of error responses by status, besides those of all responses. */
const HEADERS: Readonly<Record<number, NonNullable<ApiResponseOptions['headers']>>> = {
  401: {
    'WWW-Authenticate': text(
      '`Bearer`. With `OIDC_ISSUER` also `resource_metadata`, the URL of the metadata for signing in (RFC 9728).',
    ),
  },
  402: QUOTA_HEADERS,
  405: { Allow: text('The methods that the endpoint supports.') },
  429: { ...RETRY_AFTER, ...shared(RATE_LIMIT_HEADERS) },
  502: RETRY_AFTER,
  503: RETRY_AFTER,
};

/** Of the 403 of routes that require a scope. */
const SCOPE_HEADERS = {
  'WWW-Authenticate': text(
    'Of an access token without the scope: `error="insufficient_scope"`, and the `scope` to request.',
  ),
};

function errorResponse(status: number, examples: readonly ErrorExample[]) {
  const codes = examples.map(({ error }) => error.code);
  return {
    description: examples.map(({ title, error }) => `\`${error.code}\`: ${title}.`).join(' '),
    headers: { ...HEADERS[status], ...(codes.includes('scope_missing') && SCOPE_HEADERS) },
    content: {
      'application/json': {
        schema: refTo(ErrorBodyDto),
        examples: Object.fromEntries(
          examples.map(({ title, error }, index) => {
            const { code } = error;
            const name = codes.indexOf(code) === index ? code : `${code}_${index + 1}`;
            return [name, { summary: title, value: errorBody(error, REQUEST_ID) }];
          }),
        ),
      },
    },
  };
}
