import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../test/any-text.js';
import type { Segment } from '../../domain/transcript.js';
import { firstLanguage, jsonOf, storedParts } from '../cache/transcript-text.js';

const segment: fc.Arbitrary<Segment> = fc.record(
  {
    text: anyText({ maxLength: 20 }),
    start: fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
    duration: fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  },
  { noNullPrototype: true },
);

describe('the segments of a stored transcript', () => {
  it('are those that were stored, whatever their texts contain', () => {
    const language = fc.constantFrom('en', 'de', 'zh-Hans', 'a"b', '"},{"text":"');
    const languages = fc.uniqueArray(fc.tuple(language, fc.array(segment)), { selector: ([code]) => code });
    fc.assert(
      fc.property(languages, (transcript) => {
        const stored = JSON.parse(JSON.stringify(transcript)) as [string, Segment[]][];
        const json = jsonOf(new Map(transcript));
        expect(storedParts(json).map((part) => [part.language, part.segments])).toEqual(stored);
        expect(firstLanguage(json)).toEqual(stored[0]?.[1] ?? []);
      }),
    );
  });

  it.each(['[1]', '{"en":[{"text":1}]}', '{"en":[', 'null', '{"en":{}}'])('are not read from %s', (text) => {
    expect(() => storedParts(Buffer.from(text))).toThrow('not readable');
  });
});
