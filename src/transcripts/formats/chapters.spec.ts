import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clockTime } from './line-text.js';
import { chaptersOf } from './chapters.js';

const PARTS = [
  { title: 'Launch', start: 0 },
  { title: 'The keel', start: 135 },
  { title: 'Varnish: two coats', start: 3723 },
];

describe('the chapters of a description', () => {
  it.each([
    ['times first', 'A dinghy.\n\n0:00 Launch\n2:15 The keel\n1:02:03 Varnish: two coats\n\nSee #1 at 5:00 and 6:00.'],
    ['separators', '0:00 - Launch\r\n02:15 – The keel\r\n01:02:03: Varnish: two coats'],
    ['brackets and bullets', '[00:00] Launch\n• (2:15) The keel\n* 62:03 | Varnish: two coats'],
    ['times last', 'Launch 0:00\nThe keel (2:15)\nVarnish: two coats - 1:02:03'],
  ])('with %s are its time stamps', (_what, description) => {
    expect(chaptersOf(description, 4000)).toEqual(PARTS);
    expect(chaptersOf(description, null)).toEqual(PARTS);
  });

  it.each([
    ['two only', '0:00 Launch\n2:15 The keel'],
    ['a start after 0:00', '0:01 Launch\n2:15 The keel\n3:00 Varnish'],
    ['another order', '0:00 Launch\n3:00 The keel\n2:15 Varnish'],
    ['one twice', '0:00 Launch\n2:15 The keel\n2:15 Varnish'],
    ['one after the end', '0:00 Launch\n2:15 The keel\n10:00 Varnish'],
    ['no titles', '0:00\n2:15\n3:00'],
    ['no times', 'Launch at 0:00 sharp.'],
    ['no text', ''],
  ])('with %s are none', (_what, description) => {
    expect(chaptersOf(description, 300)).toEqual([]);
  });

  it('that keep the rules are found again, in any title', () => {
    const title = fc.stringMatching(/^[\p{L}][\p{L} ,'&]{0,30}$/u).map((text) => text.trim());
    const part = fc.record({ title, seconds: fc.integer({ min: 1, max: 5_000 }) });
    fc.assert(
      fc.property(fc.array(part, { minLength: 3, maxLength: 20 }), (parts) => {
        let start = 0;
        const chapters = parts.map(({ title: name, seconds }) => ({
          title: name,
          start: (start += seconds) - seconds,
        }));
        const lines = chapters.map(({ title: name, start: from }) => `${clockTime(from)} ${name}`);
        expect(chaptersOf(['About the film', ...lines, 'Thanks!'].join('\n'), null)).toEqual(chapters);
      }),
    );
  });

  it('of any text keep the rules, or there are none', () => {
    const line = fc.oneof(fc.string(), fc.stringMatching(/^\d{1,2}:\d{2}(?::\d{2})? ?.{0,5}$/), fc.constant('0:00 x'));
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
        const chapters = chaptersOf(lines.join('\n'), null);
        if (chapters.length === 0) return;
        expect(chapters.length).toBeGreaterThanOrEqual(3);
        expect(chapters[0]?.start).toBe(0);
        for (const [index, { title, start }] of chapters.entries()) {
          expect(title).toBe(title.trim());
          expect(title).not.toBe('');
          if (index > 0) expect(start).toBeGreaterThan(chapters[index - 1]?.start ?? 0);
        }
      }),
    );
  });
});
