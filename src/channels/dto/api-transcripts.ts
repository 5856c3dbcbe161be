import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, getSchemaPath } from '@nestjs/swagger';
import { QUOTA_HEADERS, RATE_LIMIT_HEADERS } from '../../http/limit-headers.js';
import { NDJSON } from '../../transcripts/response/transcripts-response.js';

/** The errors of every operation with an API key that reads the platform. */
export const READ_ERRORS = [
  'invalid_request',
  'unauthorized',
  'invalid_api_key',
  'method_not_allowed',
  'rate_limited',
  'concurrency_limited',
  'failed_authentications',
  'internal_error',
  'service_unavailable',
  'at_capacity',
] as const;

/** The errors of an operation that lists videos of the platform and returns their transcripts. */
export const LIST_ERRORS = [
  ...READ_ERRORS,
  'plan_limit_exceeded',
  'upstream_failure',
  'upstream_blocked',
  'upstream_timeout',
] as const;

/** What the OpenAPI document states of the response of an operation for many videos. */
interface ListDocs {
  type: Type<unknown>;
  example: unknown;
  /** The first lines of the NDJSON response, with their fields. */
  firstLines: string;
  ndjsonExample: string;
  /** The order of the JSON response. */
  order: string;
}

/** Documents the response of an operation for many videos. */
export function ApiTranscripts({ type, example, firstLines, ndjsonExample, order }: ListDocs): MethodDecorator {
  return applyDecorators(
    ApiExtraModels(type),
    ApiOkResponse({
      content: {
        'application/json': { schema: { $ref: getSchemaPath(type) }, example },
        [NDJSON]: {
          schema: {
            type: 'string',
            description:
              `One JSON object per line, with a \`type\`: ${firstLines} a \`result\` with the field ` +
              '`result` as each video finishes, and last `summary` with the field `summary`. The fields are those of the JSON response.',
          },
          example: ndjsonExample,
        },
      },
      description:
        `One entry for each video. JSON is streamed ${order}; NDJSON (\`Accept: application/x-ndjson\`) in the order in ` +
        'which the videos finish.',
      headers: { ...ENTRY_HEADERS },
    }),
  );
}

/** The headers of a response with transcripts. */
export const ENTRY_HEADERS = {
  'X-Request-Id': { description: 'The ID of the request.', schema: { type: 'string' as const } },
  Vary: {
    description:
      '`Accept-Encoding, Accept`: the body is compressed for clients that accept gzip, and has another content type for ' +
      'clients that accept it.',
    schema: { type: 'string' as const },
  },
  ...RATE_LIMIT_HEADERS,
  ...QUOTA_HEADERS,
};
