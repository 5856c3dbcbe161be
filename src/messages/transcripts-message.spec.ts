import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../domain/errors.js';
import { readTranscriptsMessage } from './transcripts-message.js';

async function fieldsRefused(message: unknown): Promise<readonly string[]> {
  return readTranscriptsMessage(message).then(
    () => [],
    (error: unknown) => {
      if (error instanceof InvalidRequestError) return error.details.map(({ field }) => field);
      throw error;
    },
  );
}

/** A list in a list, and so on. */
function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level += 1) value = [value];
  return value;
}

describe('a message that asks for transcripts', () => {
  it('has the defaults of the query where it says nothing', async () => {
    expect(await readTranscriptsMessage({ apiKey: 'k', requestId: 'r', id: '@name' })).toEqual({
      id: '@name',
      query: { limit: 25 },
    });
  });

  it('may say a number and a list, which count as their text', async () => {
    expect(await readTranscriptsMessage({ id: 'x', limit: 500, languages: ['EN', 'de'] })).toEqual({
      id: 'x',
      query: { limit: 100, languages: ['en', 'de'] },
    });
  });

  it('is refused when a field of it is nested too deep to be validated', async () => {
    expect(await fieldsRefused({ id: 'x', limit: nested(100_000) })).toEqual(['limit']);
    const several = { id: 'x', languages: nested(100_000), other: nested(100_000) };
    expect(await fieldsRefused(several)).toEqual(['languages', 'other']);
  });

  it.each<[unknown, string[]]>([
    [{ id: 'x', limit: null }, ['limit']],
    [{ id: 'x', limit: [1] }, ['limit']],
    [{ id: 'x', limit: 1e21 }, ['limit']],
    [{ id: 'x', limit: true }, ['limit']],
    [{ id: 'x', languages: [] }, ['languages']],
    [{ id: 'x', languages: ['en', 1] }, ['languages']],
    [{ id: 'x', languages: null }, ['languages']],
    [JSON.parse('{ "id": "x", "__proto__": 1 }'), ['__proto__']],
    [{ limit: 0, page: 1 }, ['id', 'limit', 'page']],
    ['@name', ['id']],
    [null, ['id']],
  ])('is refused when it is %j, naming %j', async (message, fields) => {
    expect(await fieldsRefused(message)).toEqual(fields);
  });

  it('is read or refused, whatever it is, and never anything else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (message) => {
        expect(Array.isArray(await fieldsRefused(message))).toBe(true);
      }),
    );
  });
});
