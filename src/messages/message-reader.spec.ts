import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../domain/errors.js';
import { TranscriptsQueryDto } from '../transcripts/dto/transcripts-query.dto.js';
import { VideosBodyDto } from '../videos/dto/videos-request.dto.js';
import { readIdMessage, readMessage } from './open-messages.js';

const readVideosMessage = (message: unknown): VideosBodyDto => readMessage(message, VideosBodyDto, 'json');

const readTranscriptsMessage = (message: unknown) => readIdMessage(message, TranscriptsQueryDto, 'a channel');

function detailsOf(
  message: unknown,
  read: (message: unknown) => unknown = readTranscriptsMessage,
): readonly { field: string; message: string }[] {
  try {
    read(message);
    return [];
  } catch (error) {
    if (error instanceof InvalidRequestError) return error.details;
    throw error;
  }
}

const fieldsRefused = (...message: Parameters<typeof detailsOf>): string[] =>
  detailsOf(...message).map(({ field }) => field);

/** Nested lists. */
function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level += 1) value = [value];
  return value;
}

describe('readIdMessage', () => {
  it('reads a number and a list like their text in a query', () => {
    expect(
      readTranscriptsMessage({ apiKey: 'k', requestId: 'r', id: 'x', limit: 500, languages: ['EN', 'de'] }),
    ).toEqual({
      id: 'x',
      query: { limit: 100, languages: ['en', 'de'], match: 'all', tracks: 'any' },
    });
  });

  it('refuses a field that is nested too deep to be validated', () => {
    for (const name of ['limit', 'other'])
      expect(fieldsRefused({ id: 'x', [name]: nested(100_000) })).toEqual(['body']);
  });

  it('names the parameter that an unknown one means', () => {
    expect(detailsOf({ id: 'x', lang: 'en' })).toEqual([
      { field: 'lang', message: expect.stringMatching(/Did you mean languages\? Its parameters: .*limit/) },
    ]);
  });

  it('reports the first of many unknown names, and how many more there are', () => {
    const names = Array.from({ length: 58_000 }, (_, index) => [`unknown${index}`, 1]);
    const details = detailsOf({ id: 'x', ...Object.fromEntries(names) });
    expect(details.map(({ field }) => field)).toEqual(names.slice(0, 20).map(([name]) => name));
    expect(details.at(-1)?.message).toMatch(/ 57980 more unknown names are not listed\.$/);
  });

  it.each<[unknown, string[]]>([
    [{ id: 'x', limit: null }, ['limit']],
    [{ id: 'x', limit: Infinity }, ['limit']],
    [{ id: 'x', languages: [] }, ['languages']],
    [{ id: 'x', languages: ['en', 1] }, ['languages']],
    [JSON.parse('{ "id": "x", "__proto__": 1 }'), ['__proto__']],
    [{ limit: 0, page: 1 }, ['id']],
    [{ id: 'x', limit: 0, page: 1 }, ['limit', 'page']],
    ['@name', ['id']],
    [null, ['id']],
  ])('refuses %j, naming %j', (message, fields) => {
    expect(fieldsRefused(message)).toEqual(fields);
  });

  it('returns or refuses any message, without another error', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (message) => {
        expect(Array.isArray(fieldsRefused(message))).toBe(true);
      }),
    );
  });
});

describe('a message about a list of videos', () => {
  it('reads the references as they are, and languages as a list or as text', () => {
    const videos = ['hl-dinghy__', 'https://youtu.be/hl-dinghy__'];
    expect(readVideosMessage({ apiKey: 'k', videos })).toEqual({ videos, match: 'all', tracks: 'any' });
    expect(readVideosMessage({ videos, languages: ['EN'] })).toEqual({
      videos,
      languages: ['en'],
      match: 'all',
      tracks: 'any',
    });
    expect(readVideosMessage({ videos, languages: 'en,de' })).toEqual({
      videos,
      languages: ['en', 'de'],
      match: 'all',
      tracks: 'any',
    });
  });

  it.each<[unknown, string[]]>([
    [{}, ['videos']],
    [{ videos: Array.from({ length: 101 }, () => 'x') }, ['videos']],
    [{ videos: [1] }, ['videos']],
    [{ videos: ['x'], id: 'x' }, ['id']],
    [{ videos: ['x'], languages: [] }, ['languages']],
    ['x', ['videos']],
  ])('refuses %j, naming %j', (message, fields) => {
    expect([...new Set(fieldsRefused(message, readVideosMessage))]).toEqual(fields);
  });
});
