import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { closed } from '../../../openapi/closed-schema.js';

export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  oneOf?: Schema[];
  items?: Schema;
  example?: unknown;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
}

export interface Operation {
  parameters?: { name: string; in: string; schema: Schema; example?: unknown }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Content; 'x-other-content'?: Content }>;
}

type Content = Record<string, { schema: Schema }>;

interface DocumentJson {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export interface Route {
  method: string;
  path: string;
  pattern: RegExp;
  operation: Operation;
}

export const TRANSCRIPTS = '/channels/{id}/transcripts';
export const RESULTS = '/jobs/{id}/results';
export const WEBHOOKS = '/webhooks';
export const JOBS = '/jobs';
export const MCP = '/mcp';
/** Routes whose parameter may contain slashes. */
const WITH_RAW_URL = [
  ...[TRANSCRIPTS, '/channels/{id}/uploads', '/videos/{id}/transcript'],
  ...['/playlists/{id}/transcripts', '/playlists/{id}/videos'],
];

/** The OpenAPI document of a running service, to generate requests from and to validate responses against. */
export class ApiDocument {
  readonly routes: readonly Route[];
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators = new Map<string, ValidateFunction>();

  constructor(private readonly json: DocumentJson) {
    addFormats.default(this.ajv);
    this.ajv.addSchema({ $id: 'openapi', components: closed(json.components) });
    this.routes = Object.entries(json.paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => {
        const parameter = WITH_RAW_URL.includes(path) ? '[^/]+(?:/.*[^/]/?)?' : '[^/]+';
        const pattern = new RegExp(`^${path.replace(/\{[^}]+\}/g, parameter)}$`);
        return { method: method.toUpperCase(), path, pattern, operation };
      }),
    );
  }

  /** The routes that match a path, for any method; only the documented spelling matches. */
  routesAt(path: string): readonly Route[] {
    return this.routes.filter(({ pattern }) => pattern.test(path));
  }

  resolved(schema: Schema): Schema {
    const name = schema.$ref?.split('/').at(-1);
    return name === undefined ? schema : (this.json.components.schemas[name] ?? {});
  }

  /** The schema violation of a value; undefined when it is valid. */
  mismatch(schema: Schema, value: unknown): string | undefined {
    const text = JSON.stringify(closed(schema)).replaceAll('"#/components', '"openapi#/components');
    let validate = this.validators.get(text);
    if (!validate) {
      validate = this.ajv.compile(JSON.parse(text) as object);
      this.validators.set(text, validate);
    }
    return validate(value) ? undefined : this.ajv.errorsText(validate.errors);
  }
}
