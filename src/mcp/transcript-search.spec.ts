import { describe, expect, it, jest } from '@jest/globals';
import { jsonOf } from '../transcripts/cache/transcript-text.js';
import { normalized, searchTranscript, type Match } from './tools/search-tool.js';

async function search(languages: Record<string, string[]>, phrase: string): Promise<Match[]> {
  const transcript = Object.entries(languages).map(
    ([code, texts]) => [code, texts.map((text, start) => ({ text, start, duration: 1 }))] as const,
  );
  return searchTranscript(await jsonOf(new Map(transcript)), normalized(phrase));
}

const TEXTS = ['Good morning', 'from the', 'boatyard.', 'This little', 'DINGHY was', 'built in 1962.', 'The end'];

describe('a search in a transcript', () => {
  it('returns the segment in which the phrase begins, with its neighbours', async () => {
    expect(await search({ en: TEXTS }, 'dinghy')).toEqual([
      { start: 4, excerpt: 'This little DINGHY was built in 1962.' },
    ]);
    expect(await search({ en: TEXTS }, 'good')).toEqual([{ start: 0, excerpt: 'Good morning from the' }]);
  });

  it('finds a phrase across any number of segments', async () => {
    expect(await search({ en: TEXTS }, 'the boatyard. this LITTLE dinghy')).toEqual([
      { start: 1, excerpt: 'Good morning from the boatyard.' },
    ]);
  });

  it('compares without case, the forms of Unicode and runs of white space', async () => {
    expect(await search({ en: ['Cafe\u0301  \n au lait'] }, 'CAFÉ au\tlait')).toHaveLength(1);
    expect(await search({ tr: ['İstanbul'] }, 'i̇stanbul')).toHaveLength(1);
    expect(await search({ ja: ['今日は、', '世界。'] }, '世界')).toEqual([{ start: 1, excerpt: '今日は、世界。' }]);
    expect(await search({ ja: ['今日は、', '', '世界。'] }, '今日は、世界')).toHaveLength(1);
  });

  it('joins matches that share an excerpt, and never repeats a segment', async () => {
    const found = await search({ en: ['tide', 'tide', 'tide', 'tide', 'tide'] }, 'tide');
    expect(found.map(({ start }) => start)).toEqual([0, 2, 4]);
    expect(found.map(({ excerpt }) => excerpt)).toEqual(['tide tide', 'tide tide', 'tide']);
  });

  it('looks no further for what an excerpt shows already', async () => {
    const lines = Array<string>(300).fill('e'.repeat(100));
    const looks = jest.spyOn(String.prototype, 'indexOf');
    const found = await search({ en: lines }, 'e');
    const count = looks.mock.calls.filter(([phrase]) => phrase === 'e').length;
    looks.mockRestore();
    expect([found.length, count]).toEqual([150, 150]);
  });

  it('covers all languages', async () => {
    expect(await search({ en: ['boat'], de: ['Boot', 'boat'] }, 'boat')).toHaveLength(2);
    expect(await search({ en: ['boat'] }, 'ship')).toEqual([]);
  });

  it('cuts segments that are not divided into lines', async () => {
    const [match] = await search({ en: [`boat ${'x'.repeat(5_000)}`] }, 'boat');
    expect(match?.excerpt.length).toBe(301);
  });
});
