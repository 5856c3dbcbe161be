import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../domain/errors.js';
import { TranscriptsQueryDto } from '../transcripts/dto/transcripts-query.dto.js';
import { readIdMessage, readVideosMessage } from './message-reader.js';

const readTranscriptsMessage = (message: unknown) => readIdMessage(message, TranscriptsQueryDto, 'a channel');

async function fieldsRefused(
  message: unknown,
  read: (message: unknown) => Promise<unknown> = readTranscriptsMessage,
): Promise<readonly string[]> {
  return read(message).then(
    () => [],
    (error: unknown) => {
      if (error instanceof InvalidRequestError) return error.details.map(({ field }) => field);
      throw error;
    },
  );
}

/** Nested lists. */
function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level += 1) value = [value];
  return value;
}

describe('readIdMessage', () => {
  it('reads a number and a list like their text in a query', async () => {
    expect(
      await readTranscriptsMessage({ apiKey: 'k', requestId: 'r', id: 'x', limit: 500, languages: ['EN', 'de'] }),
    ).toEqual({
      id: 'x',
      query: { limit: 100, languages: ['en', 'de'] },
    });
  });

  it('refuses a field that is nested too deep to be validated', async () => {
    for (const name of ['limit', 'other'])
      expect(await fieldsRefused({ id: 'x', [name]: nested(100_000) })).toEqual(['body']);
  });

  it('names the parameter that an unknown one means', async () => {
    await expect(readTranscriptsMessage({ id: 'x', lang: 'en' })).rejects.toMatchObject({
      details: [{ field: 'lang', message: expect.stringMatching(/Did you mean languages\? Its parameters: .*limit/) }],
    });
  });

  it('reports the first of many unknown names, and how many more there are', async () => {
    const names = Array.from({ length: 58_000 }, (_, index) => [`unknown${index}`, 1]);
    const refused: unknown = await readTranscriptsMessage({ id: 'x', ...Object.fromEntries(names) }).catch(
      (error: unknown) => error,
    );
    if (!(refused instanceof InvalidRequestError)) throw refused;
    expect(refused.details.map(({ field }) => field)).toEqual(names.slice(0, 20).map(([name]) => name));
    expect(refused.details.at(-1)?.message).toMatch(/ 57980 more unknown names are not listed\.$/);
  });

  it.each<[unknown, string[]]>([
    [{ id: 'x', limit: null }, ['limit']],
    [{ id: 'x', limit: 1e21 }, ['limit']],
    [{ id: 'x', languages: [] }, ['languages']],
    [{ id: 'x', languages: ['en', 1] }, ['languages']],
    [JSON.parse('{ "id": "x", "__proto__": 1 }'), ['__proto__']],
    [{ limit: 0, page: 1 }, ['id']],
    [{ id: 'x', limit: 0, page: 1 }, ['limit', 'page']],
    ['@name', ['id']],
    [null, ['id']],
  ])('refuses %j, naming %j', async (message, fields) => {
    expect(await fieldsRefused(message)).toEqual(fields);
  });

  it('returns or refuses any message, without another error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (message) => {
        expect(Array.isArray(await fieldsRefused(message))).toBe(true);
      }),
    );
  });
});

describe('readVideosMessage', () => {
  it('reads the references as they are, and languages as a list or as text', async () => {
    const videos = ['hl-dinghy__', 'https://youtu.be/hl-dinghy__'];
    expect(await readVideosMessage({ apiKey: 'k', videos })).toEqual({ videos });
    expect(await readVideosMessage({ videos, languages: ['EN'] })).toEqual({ videos, languages: ['en'] });
    expect(await readVideosMessage({ videos, languages: 'en,de' })).toEqual({ videos, languages: ['en', 'de'] });
  });

  it.each<[unknown, string[]]>([
    [{}, ['videos']],
    [{ videos: Array.from({ length: 101 }, () => 'x') }, ['videos']],
    [{ videos: [1] }, ['videos']],
    [{ videos: ['x'], id: 'x' }, ['id']],
    [{ videos: ['x'], languages: [] }, ['languages']],
    ['x', ['videos']],
  ])('refuses %j, naming %j', async (message, fields) => {
    expect([...new Set(await fieldsRefused(message, readVideosMessage))]).toEqual(fields);
  });
});
