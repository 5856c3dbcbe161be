import { applyDecorators, HttpCode, type HttpStatus, type Type } from '@nestjs/common';
import {
  ApiExtraModels,
  ApiProperty,
  ApiResponse,
  type ApiResponseOptions,
  getSchemaPath,
  type OpenAPIObject,
} from '@nestjs/swagger';

// How the OpenAPI document describes the kinds of fields that many responses have. Examples are those of whole responses.

export const countField = (description: string) => ({ type: 'integer', minimum: 0, description }) as const;

export const textOrNull = (description: string) => ({ type: 'string', nullable: true, description }) as const;

export const dateTime = (description: string) => ({ type: 'string', format: 'date-time', description }) as const;

export const dateTimeOrNull = (description: string) => ({ ...dateTime(description), nullable: true }) as const;

/** An object that can be null, declared in place: in OpenAPI 3.0 a reference to another schema cannot be. */
export const objectOrNull = <Properties extends object>(description: string, properties: Properties) =>
  ({
    type: 'object',
    nullable: true,
    properties,
    required: Object.keys(properties),
    selfRequired: true,
    description,
  }) as const;

/** What the pages of all lists have; the class of a page adds its entries. */
export abstract class PageDto {
  @ApiProperty(textOrNull('The value of `after` for the next page. Null on the last page.'))
  next: string | null;
}

type Headers = NonNullable<ApiResponseOptions['headers']>;

const OTHER_CONTENT = 'x-other-content';

/**
 * The content of a response whose media type the caller chooses. Only JSON is its `content`: generated clients take each
 * further one as another type of the same status.
 */
export const contentOf = (json: object, others: Record<string, object>) => ({
  content: { 'application/json': json },
  [OTHER_CONTENT]: others,
});

/** A response with other media types, or a parameter. */
type Described = Record<string, unknown> & {
  [OTHER_CONTENT]?: object;
  content?: object;
  schema?: { default?: string | number };
};

/**
 * Returns the document for Swagger UI, which offers the media types of `content` alone, and would send the default of every
 * parameter: it stands in the description instead.
 */
export function forSwaggerUi(document: OpenAPIObject): OpenAPIObject {
  const change = (_name: string, value: Described | null): unknown => {
    if (value?.[OTHER_CONTENT])
      return { ...value, content: { ...value.content, ...value[OTHER_CONTENT] }, [OTHER_CONTENT]: undefined };
    if (!value?.['in'] || value['required'] || value.schema?.default === undefined) return value;
    const { default: preset, ...schema } = value.schema;
    return { ...value, schema, description: `${String(value['description'])} Default: \`${preset}\`.` };
  };
  return JSON.parse(JSON.stringify(document, change)) as OpenAPIObject;
}

/** The success status of a route, and the response with an example in the OpenAPI document. */
export function ApiResult<T extends object>(
  status: HttpStatus,
  type: Type<T>,
  description: string,
  example: T,
  headers: Headers = {},
): MethodDecorator {
  const content = { 'application/json': { schema: { $ref: getSchemaPath(type) }, example } };
  return applyDecorators(
    HttpCode(status),
    ApiExtraModels(type),
    ApiResponse({ status, description, headers, content }),
  );
}
