import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { breakingChanges } from './compatibility.js';
import { listOf, objectOf } from './json.js';

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'));

const PET = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string', maxLength: 10 },
    kind: { type: 'string', enum: ['cat', 'dog'] },
    age: { type: 'integer', minimum: 0 },
    note: { type: 'string', nullable: true },
    mother: { $ref: '#/components/schemas/Pet' },
    toys: { type: 'array', items: { type: 'string' } },
  },
};

const DOCUMENT = {
  components: { schemas: { Pet: PET } },
  paths: {
    '/pets': {
      post: {
        operationId: 'makePet',
        security: [{ key: [] }],
        parameters: [{ name: 'limit', in: 'query', required: false, schema: { type: 'integer', minimum: 1 } }],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } } },
        responses: {
          200: {
            description: 'Made.',
            headers: { 'X-Left': { schema: { type: 'integer' } } },
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
          },
          404: { description: 'No such pet.' },
        },
      },
    },
  },
};

const OPERATION = ['paths', '/pets', 'post'];
const SCHEMA = ['components', 'schemas', 'Pet'];
const FIELD = [...SCHEMA, 'properties'];

/** A copy in which one place holds something else; undefined takes it out. */
function changed(value: unknown, path: readonly string[], to: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return to;
  if (Array.isArray(value)) {
    return listOf(value).flatMap((item, index) => {
      const made = String(index) === name ? changed(item, rest, to) : item;
      return made === undefined ? [] : [made];
    });
  }
  const object = objectOf(value);
  const inner = changed(object[name], rest, to);
  const others = Object.fromEntries(Object.entries(object).filter(([key]) => key !== name));
  return inner === undefined ? others : { ...others, [name]: inner };
}

describe('a change that would break a client is named', () => {
  it.each<[string, readonly string[], unknown, string]>([
    ['an operation that is gone', OPERATION, undefined, 'the operation is gone'],
    ['another operationId', [...OPERATION, 'operationId'], 'newPet', 'the operationId is another'],
    ['another way to authenticate', [...OPERATION, 'security'], [{ token: [] }], 'the security'],
    ['a parameter that is gone', [...OPERATION, 'parameters'], [], 'the parameter query:limit is gone'],
    ['a parameter that is required now', [...OPERATION, 'parameters', '0', 'required'], true, 'is required now'],
    ['a narrower bound', [...OPERATION, 'parameters', '0', 'schema', 'minimum'], 2, 'minimum is narrower (2)'],
    ['another type of a parameter', [...OPERATION, 'parameters', '0', 'schema', 'type'], 'string', 'integer is gone'],
    ['a response that is gone', [...OPERATION, 'responses', '404'], undefined, 'the response 404 is gone'],
    ['a header that is gone', [...OPERATION, 'responses', '200', 'headers'], {}, 'the header X-Left is gone'],
    ['a content type that is gone', [...OPERATION, 'responses', '200', 'content'], {}, 'application/json is gone'],
    ['a body that is required now', [...OPERATION, 'requestBody', 'required'], true, 'a body is required now'],
    ['a field that is gone', [...FIELD, 'age'], undefined, 'body.age: the field is gone'],
    ['a value that is gone', [...FIELD, 'kind', 'enum'], ['cat'], 'the value "dog" is gone'],
    ['a field of another type', [...FIELD, 'age', 'type'], 'string', 'the type integer is gone'],
    ['a field that can be null now', [...FIELD, 'name', 'nullable'], true, 'the type is wider'],
    ['a field that cannot be null any more', [...FIELD, 'note', 'nullable'], false, 'the type null is gone'],
    ['a field that may be missing now', [...SCHEMA, 'required'], [], 'may be missing now'],
    ['a field that is required now', [...SCHEMA, 'required'], ['name', 'age'], 'body.age: the field is required now'],
    ['a shorter text', [...FIELD, 'name', 'maxLength'], 9, 'maxLength is narrower (9)'],
    ['a pattern', [...FIELD, 'name', 'pattern'], '^a', 'the pattern is another'],
    ['another format', [...FIELD, 'name', 'format'], 'uuid', 'the format is another (uuid)'],
    ['members of another type', [...FIELD, 'toys', 'items', 'type'], 'integer', 'toys[]: the type string is gone'],
    ['other fields that are refused', [...SCHEMA, 'additionalProperties'], false, 'other fields are refused now'],
  ])('%s', (_what, path, to, says) => {
    expect(breakingChanges(DOCUMENT, changed(DOCUMENT, path, to)).join('\n')).toContain(says);
  });

  it('a new parameter that is required', () => {
    const parameters = [
      ...DOCUMENT.paths['/pets'].post.parameters,
      { name: 'key', in: 'query', required: true, schema: { type: 'string' } },
    ];
    const faults = breakingChanges(DOCUMENT, changed(DOCUMENT, [...OPERATION, 'parameters'], parameters));
    expect(faults).toEqual(['POST /pets: the parameter query:key is required now']);
  });

  it('wherever it is taken out of the document of the service', () => {
    const document = read('openapi.json');
    const places = removable(document);
    expect(places.length).toBeGreaterThan(200);
    fc.assert(
      fc.property(fc.constantFrom(...places), (place) => {
        expect(breakingChanges(document, changed(document, place, undefined))).not.toEqual([]);
      }),
      { numRuns: 25 },
    );
  });
});

describe('a change that only adds is none', () => {
  it.each<[string, readonly string[], unknown]>([
    ['an operation', ['paths', '/pets', 'get'], { operationId: 'listPets', responses: {} }],
    ['a path', ['paths', '/toys'], { get: { operationId: 'listToys', responses: {} } }],
    ['a status', [...OPERATION, 'responses', '429'], { description: 'Too many.' }],
    ['a content type', [...OPERATION, 'responses', '200', 'content', 'application/x-ndjson'], { schema: {} }],
    ['a field', [...FIELD, 'colour'], { type: 'string' }],
    ['a value of an enumeration', [...FIELD, 'kind', 'enum'], ['cat', 'dog', 'fish']],
    ['a wider bound', [...OPERATION, 'parameters', '0', 'schema', 'minimum'], 0],
    ['a description', [...FIELD, 'name', 'description'], 'What it is called.'],
  ])('%s', (_what, path, to) => {
    expect(breakingChanges(DOCUMENT, changed(DOCUMENT, path, to))).toEqual([]);
  });
});

/** Every place of the document whose absence a client would notice. */
function removable(document: unknown): string[][] {
  return Object.entries(objectOf(objectOf(document)['paths'])).flatMap(([path, item]) =>
    Object.entries(objectOf(item)).flatMap(([method, operation]) => {
      const at = ['paths', path, method];
      const { parameters, responses } = objectOf(operation);
      return [
        at,
        ...listOf(parameters).map((_parameter, index) => [...at, 'parameters', String(index)]),
        ...Object.entries(objectOf(responses)).flatMap(([status, response]) => {
          const there = [...at, 'responses', status];
          return [
            there,
            ...Object.keys(objectOf(objectOf(response)['headers'])).map((name) => [...there, 'headers', name]),
          ];
        }),
      ];
    }),
  );
}
