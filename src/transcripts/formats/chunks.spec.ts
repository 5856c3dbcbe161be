import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Segment } from '../../domain/transcript.js';
import { superLinearGrowth } from '../../../test/cpu/linear-time.js';
import { chunksOf } from './chunks.js';

const wordsOf = (segments: readonly Segment[]): string[] => segments.flatMap(({ text }) => text.split(' '));
const endOf = ({ start, duration }: Segment): number => start + duration;

const segments = fc
  .array(
    fc.record({
      text: fc.constantFrom('The tide', 'comes in.', 'Is it high?', 'and out again', 'Slack water…', 'So'),
      gap: fc.integer({ min: 0, max: 20_000 }),
      ms: fc.integer({ min: 0, max: 40_000 }),
    }),
    { maxLength: 60 },
  )
  .map((parts) => {
    let startMs = 0;
    return parts.map(({ text, gap, ms }) => ({ text, start: (startMs += gap) / 1000, duration: ms / 1000 }));
  });
const seconds = fc.integer({ min: 15, max: 600 });

describe('the chunks of a transcript', () => {
  it('have the same text in the same order', () => {
    fc.assert(
      fc.property(segments, seconds, (given, length) => {
        expect(wordsOf(chunksOf(given, length))).toEqual(wordsOf(given));
      }),
    );
  });

  it('start with a segment and end with the last of theirs, and are no longer than asked unless one segment is', () => {
    fc.assert(
      fc.property(segments, seconds, (given, length) => {
        const rest = [...given];
        for (const chunk of chunksOf(given, length)) {
          const own = rest.splice(
            0,
            rest.findIndex((_segment, index) => wordsOf(rest.slice(0, index + 1)).join(' ') === chunk.text) + 1,
          );
          expect(chunk.start).toBe(own[0]?.start);
          expect(endOf(chunk)).toBeCloseTo(Math.max(...own.map(endOf)), 3);
          if (own.length > 1) expect(chunk.duration).toBeLessThanOrEqual(length + 0.001);
        }
        expect(rest).toEqual([]);
      }),
    );
  });

  it('do not change the segments, which are shared with the cache', () => {
    fc.assert(
      fc.property(segments, seconds, (given, length) => {
        const before = structuredClone(given);
        chunksOf(given, length);
        expect(given).toEqual(before);
      }),
    );
  });

  it('are the chunks of themselves', () => {
    fc.assert(
      fc.property(segments, seconds, (given, length) => {
        const chunks = chunksOf(given, length);
        expect(chunksOf(chunks, length)).toEqual(chunks);
      }),
    );
  });

  it('are made in a time that grows with the number of segments', () => {
    const prepare = (size: number) => () => {
      const all = Array.from({ length: size }, () => ({ text: 'The tide comes in…', start: 0, duration: 1 }));
      for (const chunk of chunksOf(all, 600)) chunk.text.indexOf('|');
    };
    expect(superLinearGrowth(prepare, 64 * 1024)).toBeUndefined();
  });

  it('end with a sentence where there is one near their end', () => {
    const texts = ['One', 'two', 'three.', 'Four', 'five'];
    const given = texts.map((text, index) => ({ text, start: index * 16, duration: 16 }));
    expect(chunksOf(given, 64)).toEqual([
      { text: 'One two three.', start: 0, duration: 48 },
      { text: 'Four five', start: 48, duration: 32 },
    ]);
  });

  it('are joined without a space where a script has none', () => {
    const given = ['港の', '灯台'].map((text, index) => ({ text, start: index, duration: 1.1 }));
    expect(chunksOf(given, 15)).toEqual([{ text: '港の灯台', start: 0, duration: 2.1 }]);
  });
});
