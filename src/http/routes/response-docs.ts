import { applyDecorators, HttpCode, type HttpStatus, type Type } from '@nestjs/common';
import {
  ApiExtraModels,
  ApiProperty,
  type ApiPropertyOptions,
  ApiResponse,
  type ApiResponseOptions,
  getSchemaPath,
  type OpenAPIObject,
} from '@nestjs/swagger';
import { z } from 'zod';

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

/** The schema of a response: a class with the decorators of Swagger, such as a row of a table, or a schema with an `id`. */
export type Model<T = object> = Type<T> | z.ZodType<T>;

/** What refers to a model in the document. Schemas are added by `addSchemas`, classes by `ApiExtraModels`. */
export function refTo(model: Model): { $ref: string } {
  return { $ref: getSchemaPath(model instanceof z.ZodType ? (z.globalRegistry.get(model)?.id ?? '') : model) };
}

/** A class within a schema. */
export const instanceOf = <T>(type: Type<T>) => z.custom<T>().meta({ $ref: getSchemaPath(type) });

/** An object that can be null, in place: in OpenAPI 3.0 a reference to another schema cannot be. */
export const orNull = <T extends z.ZodRawShape>({ shape }: z.ZodObject<T>, description: string) =>
  z.object(shape).nullable().describe(description);

/** Responses gain fields, so that none is excluded. An enumeration with null has it in OpenAPI 3.0. */
const IN_DOCUMENT: z.core.ToJSONSchemaParams = {
  target: 'openapi-3.0',
  unrepresentable: 'any',
  override({ zodSchema, jsonSchema }) {
    if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    delete jsonSchema.readOnly;
    if (jsonSchema['nullable'] && jsonSchema.enum) jsonSchema.enum = [...new Set([...jsonSchema.enum, null])];
    if (zodSchema instanceof z.ZodDate) Object.assign(jsonSchema, { type: 'string', format: 'date-time' });
    if (jsonSchema.$ref !== undefined && jsonSchema.description !== undefined) {
      jsonSchema.allOf = [{ $ref: jsonSchema.$ref }];
      delete jsonSchema.$ref;
    }
  },
};

/** The property of a class, such as a row of a table, by its schema. */
export function ApiField(schema: z.ZodType): PropertyDecorator {
  return ApiProperty(z.toJSONSchema(schema, IN_DOCUMENT) as ApiPropertyOptions);
}

/** Adds to the document the schemas that it refers to, and those that these refer to. */
export function addSchemas(document: OpenAPIObject): void {
  const uri = (id: string) => getSchemaPath(id);
  const { schemas: known } = z.toJSONSchema(z.globalRegistry, { ...IN_DOCUMENT, uri });
  const { schemas = {} } = (document.components ??= {});
  document.components.schemas = schemas;
  const addTo = (part: object): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      const schema = known[name];
      if (name in schemas || !schema) continue;
      delete schema.$id;
      schemas[name] = schema as (typeof schemas)[string];
      addTo(schema);
    }
  };
  addTo(document);
}

/** The success status of a route, and the response with an example in the OpenAPI document. */
export function ApiResult<T extends object>(
  status: HttpStatus,
  model: Model<T>,
  description: string,
  example: NoInfer<T>,
  headers: Headers = {},
): MethodDecorator {
  const content = { 'application/json': { schema: refTo(model), example } };
  return applyDecorators(
    HttpCode(status),
    ...(model instanceof z.ZodType ? [] : [ApiExtraModels(model)]),
    ApiResponse({ status, description, headers, content }),
  );
}
