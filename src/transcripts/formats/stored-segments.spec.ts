import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../test/any-text.js';
import type { Segment } from '../../domain/transcript.js';
import { textOf } from '../cache/transcript-text.js';
import { firstLanguage, storedParts } from './stored-segments.js';

/** Texts that look like the boundary of two segments, or of two languages. */
const TRICKY = ['},{"text":"', '"},{"text":"', '\\"},{\\"text\\":\\"', '},{', '}],"de":[{', '\\', '"', '\\"', '},{\\'];

const segment: fc.Arbitrary<Segment> = fc.record({
  text: fc.oneof(
    anyText({ maxLength: 20 }),
    fc.array(fc.constantFrom(...TRICKY)).map((parts) => parts.join('')),
  ),
  start: fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  duration: fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
});

function joined(json: Buffer): Map<string, Segment[]> {
  const languages = new Map<string, Segment[]>();
  for (const { language, segments } of storedParts(json))
    languages.set(language, [...(languages.get(language) ?? []), ...segments]);
  return languages;
}

describe('the segments of a stored transcript', () => {
  it('are those that were stored, whatever their texts contain', () => {
    const language = fc.constantFrom('en', 'de', 'zh-Hans', '__proto__', 'a"b', '"},{"text":"');
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(language, fc.array(segment)), { selector: ([code]) => code }),
        fc.nat(60),
        (languages, repeated) => {
          // Repeated, so that some transcripts are read in several slices.
          const long = { text: TRICKY.join('').repeat(80), start: 1, duration: 1 };
          const transcript = new Map(
            languages.map(([code, segments]) => [code, [...segments, ...Array<Segment>(repeated).fill(long)]]),
          );
          const stored = JSON.parse(JSON.stringify([...transcript])) as [string, Segment[]][];
          expect([...joined(textOf(transcript).json)]).toEqual(stored);
          expect([...firstLanguage(textOf(transcript).json)]).toEqual(stored[0]?.[1] ?? []);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('are parsed in slices of about 128 KB', () => {
    const segments = Array.from({ length: 20_000 }, (_, index) => ({
      text: `Line ${index}`,
      start: index,
      duration: 2,
    }));
    const parts = [...storedParts(textOf(new Map([['en', segments]])).json)];
    expect(parts.length).toBeGreaterThan(5);
    expect(Math.max(...parts.map((part) => part.segments.length))).toBeLessThan(3_500);
    expect(parts.flatMap((part) => part.segments)).toEqual(segments);
  });

  it.each(['[1]', '{"en":[{"text":1}]}', '{"en":[', 'null', '{"en":{}}'])('are not read from %s', (text) => {
    expect(() => [...storedParts(Buffer.from(text))]).toThrow('not readable');
  });
});
