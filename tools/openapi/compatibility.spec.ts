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
            headers: { 'X-Remaining': { schema: { type: 'integer' } } },
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

/** Returns a copy with another value at one path; undefined removes the value. */
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

describe('a breaking change is reported', () => {
  it.each<[string, readonly string[], unknown, string]>([
    ['a removed operation', OPERATION, undefined, 'the operation was removed'],
    ['another operationId', [...OPERATION, 'operationId'], 'newPet', 'the operationId changed'],
    ['another authentication scheme', [...OPERATION, 'security'], [{ token: [] }], 'the security'],
    ['a removed parameter', [...OPERATION, 'parameters'], [], 'the parameter query:limit was removed'],
    ['a parameter that is now required', [...OPERATION, 'parameters', '0', 'required'], true, 'is now required'],
    ['a narrower bound', [...OPERATION, 'parameters', '0', 'schema', 'minimum'], 2, 'minimum is narrower (2)'],
    [
      'another type of a parameter',
      [...OPERATION, 'parameters', '0', 'schema', 'type'],
      'string',
      'integer was removed',
    ],
    ['a removed response', [...OPERATION, 'responses', '404'], undefined, 'the response 404 was removed'],
    ['a removed header', [...OPERATION, 'responses', '200', 'headers'], {}, 'the header X-Remaining was removed'],
    ['a removed content type', [...OPERATION, 'responses', '200', 'content'], {}, 'application/json was removed'],
    ['a body that is now required', [...OPERATION, 'requestBody', 'required'], true, 'a body is now required'],
    ['a removed field', [...FIELD, 'age'], undefined, 'body.age: the field was removed'],
    ['a removed value', [...FIELD, 'kind', 'enum'], ['cat'], 'the value "dog" was removed'],
    ['a field of another type', [...FIELD, 'age', 'type'], 'string', 'the type integer was removed'],
    ['a field that is now nullable', [...FIELD, 'name', 'nullable'], true, 'the type is wider'],
    ['a field that is no longer nullable', [...FIELD, 'note', 'nullable'], false, 'the type null was removed'],
    ['a field that is now optional', [...SCHEMA, 'required'], [], 'is now optional'],
    ['a field that is now required', [...SCHEMA, 'required'], ['name', 'age'], 'body.age: the field is now required'],
    ['a shorter text', [...FIELD, 'name', 'maxLength'], 9, 'maxLength is narrower (9)'],
    ['a pattern', [...FIELD, 'name', 'pattern'], '^a', 'the pattern changed'],
    ['another format', [...FIELD, 'name', 'format'], 'uuid', 'the format changed (uuid)'],
    ['members of another type', [...FIELD, 'toys', 'items', 'type'], 'integer', 'toys[]: the type string was removed'],
    ['refused additional fields', [...SCHEMA, 'additionalProperties'], false, 'other fields are now refused'],
  ])('%s', (_what, path, to, says) => {
    expect(breakingChanges(DOCUMENT, changed(DOCUMENT, path, to)).join('\n')).toContain(says);
  });

  it('a new required parameter', () => {
    const parameters = [
      ...DOCUMENT.paths['/pets'].post.parameters,
      { name: 'key', in: 'query', required: true, schema: { type: 'string' } },
    ];
    const faults = breakingChanges(DOCUMENT, changed(DOCUMENT, [...OPERATION, 'parameters'], parameters));
    expect(faults).toEqual(['POST /pets: the parameter query:key is now required']);
  });

  it('for anything removed from the document of the service', () => {
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

describe('an addition is not reported as breaking', () => {
  it.each<[string, readonly string[], unknown]>([
    ['an operation', ['paths', '/pets', 'get'], { operationId: 'listPets', responses: {} }],
    ['a path', ['paths', '/toys'], { get: { operationId: 'listToys', responses: {} } }],
    ['a status', [...OPERATION, 'responses', '429'], { description: 'Too many.' }],
    ['a content type', [...OPERATION, 'responses', '200', 'content', 'application/x-ndjson'], { schema: {} }],
    ['a field', [...FIELD, 'colour'], { type: 'string' }],
    ['a value of an enumeration', [...FIELD, 'kind', 'enum'], ['cat', 'dog', 'fish']],
    ['a wider bound', [...OPERATION, 'parameters', '0', 'schema', 'minimum'], 0],
    ['a description', [...FIELD, 'name', 'description'], 'The name of the pet.'],
  ])('%s', (_what, path, to) => {
    expect(breakingChanges(DOCUMENT, changed(DOCUMENT, path, to))).toEqual([]);
  });
});

/** The path of every part of the document whose removal breaks clients. */
function removable(document: unknown): string[][] {
  return Object.entries(objectOf(objectOf(document)['paths'])).flatMap(([path, item]) =>
    Object.entries(objectOf(item)).flatMap(([method, operation]) => {
      const at = ['paths', path, method];
      const { parameters, responses } = objectOf(operation);
      return [
        at,
        ...listOf(parameters).map((_parameter, index) => [...at, 'parameters', String(index)]),
        ...Object.entries(objectOf(responses)).flatMap(([status, response]) => {
          const location = [...at, 'responses', status];
          return [
            location,
            ...Object.keys(objectOf(objectOf(response)['headers'])).map((name) => [...location, 'headers', name]),
          ];
        }),
      ];
    }),
  );
}
