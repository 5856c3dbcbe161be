import { applyDecorators } from '@nestjs/common';
import {
  ApiExtraModels,
  ApiProperty,
  ApiPropertyOptional,
  ApiResponse,
  ApiSchema,
  getSchemaPath,
} from '@nestjs/swagger';
import type { ErrorCode, ErrorFields } from '../domain/errors.js';
import { errorBody } from './error-body.js';
import { ERROR_STATUS } from './error-status.js';
import { QUOTA_HEADERS, RATE_LIMIT_HEADERS } from './limit-headers.js';

@ApiSchema({ name: 'InvalidField' })
class InvalidFieldSchema {
  @ApiProperty({ description: 'The parameter that is wrong.', example: 'limit' })
  field: string;

  @ApiProperty({ description: 'What is wrong with it and what would be right.' })
  message: string;
}

@ApiSchema({ name: 'Error' })
class ErrorSchema {
  @ApiProperty({ enum: Object.keys(ERROR_STATUS), description: 'Stable; see docs/errors.md.' })
  code: ErrorCode;

  @ApiProperty({ description: 'A sentence for people; it may change.' })
  message: string;

  @ApiProperty({ description: 'Whether the same call can succeed later.' })
  retryable: boolean;

  @ApiProperty({ description: 'Leads to this request in the log of the service; also in `X-Request-Id`.' })
  requestId: string;

  @ApiPropertyOptional({
    type: [InvalidFieldSchema],
    description: 'With `invalid_request`: each parameter that is wrong.',
  })
  details?: InvalidFieldSchema[];

  @ApiPropertyOptional({ type: 'integer', description: 'With `plan_limit_exceeded`: transcripts a month.' })
  limit?: number;

  @ApiPropertyOptional({ type: 'integer', description: 'With `plan_limit_exceeded`: charged this month.' })
  used?: number;

  @ApiPropertyOptional({
    type: 'integer',
    description: 'With `plan_limit_exceeded`: held for calls that are under way.',
  })
  reserved?: number;

  @ApiPropertyOptional({ type: 'integer', description: 'With `plan_limit_exceeded`: what this call could have cost.' })
  required?: number;

  @ApiPropertyOptional({
    type: String,
    format: 'date-time',
    description: 'With `plan_limit_exceeded`: when the next month begins (UTC).',
  })
  resetAt?: string;

  @ApiPropertyOptional({ type: String, description: 'With `plan_limit_exceeded`: whose quota it is.' })
  scope?: string;

  @ApiPropertyOptional({ type: String, description: 'With `feature_not_in_plan`: what the plan lacks.' })
  feature?: string;

  @ApiPropertyOptional({ type: String, description: 'With `feature_not_in_plan`: the plan of the organization.' })
  plan?: string;

  @ApiPropertyOptional({
    type: String,
    description: 'With `feature_not_in_plan`: the smallest plan that has the feature.',
  })
  requiredPlan?: string;
}

@ApiSchema({ name: 'ErrorAnswer' })
class ErrorBodySchema {
  @ApiProperty({ description: 'What went wrong.' })
  error: ErrorSchema;
}

interface ErrorExample {
  title: string;
  message: string;
  retryable?: boolean;
  fields?: ErrorFields;
}

const EXAMPLES: Record<ErrorCode, ErrorExample> = {
  invalid_request: {
    title: 'A parameter is wrong',
    message: '"page" is not a parameter of this operation.',
    fields: { details: [{ field: 'page', message: '"page" is not a parameter of this operation.' }] },
  },
  unauthorized: { title: 'No API key', message: 'Send your API key in the header "Authorization: Bearer <API_KEY>".' },
  invalid_api_key: {
    title: 'A key that is not valid',
    message: 'This API key is malformed, unknown, revoked or expired.',
  },
  plan_limit_exceeded: {
    title: 'The quota would be exceeded',
    message: 'This call could cost 25 transcripts and 7 of 5000 are left this month. limit=7 would fit.',
    fields: {
      limit: 5000,
      used: 4993,
      reserved: 0,
      required: 25,
      resetAt: '2026-12-01T00:00:00.000Z',
      scope: 'organization',
    },
  },
  feature_not_in_plan: {
    title: 'The plan lacks channel transcripts',
    message: 'Your organization is on the free plan; this operation needs the pro plan.',
    fields: { feature: 'channel_transcripts', plan: 'free', requiredPlan: 'pro' },
  },
  channel_not_found: {
    title: 'No such channel',
    message:
      'No such channel. Give a handle (@name), a channel ID (UC and 22 characters) or the URL of a channel on youtube.com.',
  },
  not_found: { title: 'Not found', message: 'Not found. See /docs for the available endpoints.' },
  method_not_allowed: { title: 'Another method', message: 'This address answers GET only.' },
  conflict: {
    title: 'The key is at its end already',
    message: 'The key "key_5b1f6a2c9d3e4f7081a2b3c4" is revoked, expired or replaced already; issue a new one.',
  },
  rate_limited: {
    title: 'Too many calls by this key',
    message: 'Rate limit of 60 requests per minute exceeded. Retry after 12 seconds.',
    retryable: true,
  },
  internal_error: {
    title: 'A bug',
    message: 'Something went wrong in the service. The request id leads to the cause in its log.',
  },
  upstream_failure: {
    title: 'The channel could not be read',
    message: 'The platform answered in a way that could not be read. Try again later.',
    retryable: true,
  },
  upstream_blocked: {
    title: 'The platform refuses',
    message: 'The platform refuses to answer this service at the moment. Try again later.',
    retryable: true,
  },
  service_unavailable: {
    title: 'The database is away or the service is stopping',
    message: 'The service cannot reach its database at the moment. Nothing was charged.',
    retryable: true,
  },
  upstream_timeout: {
    title: 'The platform is slow',
    message: 'The platform took too long to answer. Try again.',
    retryable: true,
  },
};

/** An error of a route that says something of its own; `status` when it is not the usual one of the code. */
export type OwnError = { code: ErrorCode; status?: number } & ErrorExample;

/** Documents the errors of a route: one response a status, with an example for each code. */
export function ApiErrors(...errors: (ErrorCode | OwnError)[]): MethodDecorator & ClassDecorator {
  const byStatus = new Map<number, OwnError[]>();
  for (const given of errors) {
    const error = typeof given === 'string' ? { code: given, ...EXAMPLES[given] } : given;
    const status = error.status ?? ERROR_STATUS[error.code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), error]);
  }
  const responses = [...byStatus].map(([status, sameStatus]) =>
    ApiResponse({
      status,
      description: sameStatus.map(({ code, title }) => `\`${code}\`: ${title.toLowerCase()}`).join('; '),
      headers: headersOf(status),
      content: {
        'application/json': {
          schema: { $ref: getSchemaPath(ErrorBodySchema) },
          examples: Object.fromEntries(
            sameStatus.map((error, index) => [
              sameStatus.findIndex(({ code }) => code === error.code) === index
                ? error.code
                : `${error.code}_${index + 1}`,
              { summary: error.title, value: example(error) },
            ]),
          ),
        },
      },
    }),
  );
  return applyDecorators(ApiExtraModels(ErrorBodySchema), ...responses);
}

function example({ code, message, retryable = false, fields = {} }: OwnError): unknown {
  return errorBody({ code, message, retryable, fields }, '3f0c2f5e-8a1b-4c55-9f5e-0d8f1a7c6b21');
}

function headersOf(status: number): Record<string, { description: string; schema: { type: 'string' | 'integer' } }> {
  const requestId = { 'X-Request-Id': { description: 'The id of the request.', schema: { type: 'string' as const } } };
  if (status === 401) {
    return { ...requestId, 'WWW-Authenticate': { description: '`Bearer`', schema: { type: 'string' } } };
  }
  if (status === 402) return { ...requestId, ...RATE_LIMIT_HEADERS, ...QUOTA_HEADERS };
  if (status === 429 || status === 503) {
    const retryAfter = { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' as const } } };
    return { ...requestId, ...retryAfter, ...(status === 429 && RATE_LIMIT_HEADERS) };
  }
  if (status === 405)
    return { ...requestId, Allow: { description: 'The methods there are.', schema: { type: 'string' } } };
  return requestId;
}
