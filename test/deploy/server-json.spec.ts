import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Ajv } from 'ajv';
import { VERSION } from '../../src/config/package.js';

const read = (file: string): string => readFileSync(join(import.meta.dirname, '../..', file), 'utf8');
const server = JSON.parse(read('deploy/server.json')) as {
  $schema: string;
  version: string;
  packages: { identifier: string; packageArguments: { value: string }[] }[];
};

const text = { type: 'string', minLength: 1 };
const url = { type: 'string', pattern: '^https?://[^\\s]+$' };
const listOf = (items: object): object => ({ type: 'array', minItems: 1, items });
const only = (required: Record<string, object>, optional: Record<string, object> = {}): object => ({
  type: 'object',
  required: Object.keys(required),
  properties: { ...required, ...optional },
  additionalProperties: false,
});
const flags = { isRequired: { type: 'boolean' }, isSecret: { type: 'boolean' } };
const variables = { type: 'object', additionalProperties: only({}, { description: text, ...flags }) };
const input = { description: text, value: text, variables, ...flags };
const argument = {
  anyOf: [only({ type: { const: 'positional' }, value: text }), only({ type: { const: 'named' }, name: text }, input)],
};
/** The fields that the file uses, as the schema of the registry (2025-12-11) has them. */
const SCHEMA = only(
  {
    $schema: url,
    name: { type: 'string', maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' },
    description: { type: 'string', minLength: 1, maxLength: 100 },
    version: { type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+$' },
  },
  {
    title: { type: 'string', minLength: 1, maxLength: 100 },
    packages: listOf(
      only(
        { registryType: { const: 'oci' }, identifier: text, transport: only({ type: { const: 'stdio' } }) },
        {
          runtimeHint: { const: 'docker' },
          runtimeArguments: listOf(argument),
          packageArguments: listOf(argument),
          environmentVariables: listOf(only({ name: text }, input)),
        },
      ),
    ),
    remotes: listOf(
      only({ type: { const: 'streamable-http' }, url }, { headers: listOf(only({ name: text }, input)), variables }),
    ),
  },
);

describe('deploy/server.json', () => {
  it('has the form of the registry of MCP servers', () => {
    const validate = new Ajv().compile(SCHEMA);
    validate(server);
    expect(validate.errors).toBeNull();
    expect(server.$schema).toBe('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json');
  });

  it('runs the command mcp of the image of this version', () => {
    const [image] = server.packages;
    expect([server.version, image?.identifier.split(':').at(-1)]).toEqual([VERSION, VERSION]);
    expect(image?.packageArguments.map(({ value }) => value)).toEqual(['node', 'dist/cli.js', 'mcp']);
  });

  it('names variables of the service', () => {
    const names = [...read('deploy/server.json').matchAll(/"name": "([A-Z_]{4,})"/g)].map(([, name]) => name);
    expect(names.filter((name) => !read('docs/configuration.md').includes(`- \`${name}\``))).toEqual([]);
  });
});
