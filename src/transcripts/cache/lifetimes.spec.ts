import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isPublishedSince, statedAgeSecondsMin, textLifetimeSeconds } from './lifetimes.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

/** 0 for none. */
const byText = (publishedText: string | null): number =>
  statedAgeSecondsMin({ publishedAt: null, publishedText }, NOW_MS) ?? 0;

describe('a video', () => {
  it.each<[publishedAt: string | null, publishedText: string | null, sinceSeconds: number, expected: boolean]>([
    ['2026-03-01T11:59:00Z', '2 years ago', 61, true],
    ['2026-03-01T11:59:00Z', '1 second ago', 60, false],
    ['not a date', null, DAY, false],
    [null, '9 minutes ago', 600, true],
    [null, '9 minutes ago', 599, false],
    [null, '2mo ago', 93 * DAY, true],
    [null, '2 months ago', 92 * DAY, false],
    [null, '1 year ago', 732 * DAY, true],
    [null, '1 year ago', 731 * DAY, false],
    [null, 'Streamed 5 minutes ago', DAY, false],
    [null, 'Yesterday', 2 * DAY, true],
    [null, 'yesterday', 2 * DAY - 1, false],
    [null, 'Just now', DAY, true],
    [null, 'Streamed today', 9 * DAY, false],
    [null, null, DAY, false],
  ])('with the date %s and the text %s is certainly published in the last %d seconds: %s', (...row) => {
    const [publishedAt, publishedText, sinceSeconds, expected] = row;
    const sinceMs = NOW_MS - sinceSeconds * 1_000;
    expect(isPublishedSince({ publishedAt, publishedText }, sinceMs, NOW_MS)).toBe(expected);
  });
});

describe('the age of a video, at least', () => {
  it.each<[text: string | null, seconds: number]>([
    ['40 seconds ago', 40],
    ['1 minute ago', 60],
    ['5m ago', 300],
    ['59 mins. ago', 59 * 60],
    ['5 hr ago', 5 * HOUR],
    ['1 day ago', DAY],
    ['13d ago', 13 * DAY],
    ['Streamed 3 weeks ago', 21 * DAY],
    ['2mo ago', 56 * DAY],
    ['4 Months ago', 112 * DAY],
    ['Premiered 1 year ago', 365 * DAY],
    ['12y ago', 4_380 * DAY],
    [null, 0],
    ['', 0],
    ['Premiered Feb 3, 2019', 0],
    ['Premieres 6/1/26, 8:00 PM', 0],
    ['Yesterday', 0],
    ['Just now', 0],
    ['a year ago', 365 * DAY],
    ['an hour ago', HOUR],
    ['Streamed live 2 days ago', 2 * DAY],
    ['5 x ago', 0],
    ['about 2 years ago', 0],
    ['2 years ago today', 0],
    ['-2 days ago', 0],
    ['1.5 days ago', 0],
  ])('is read from the text %j', (text, seconds) => {
    expect(byText(text)).toBe(seconds);
  });

  it('is by the exact date, unless the text states less', () => {
    const age = (publishedAt: string, publishedText: string | null = null) =>
      statedAgeSecondsMin({ publishedAt, publishedText }, NOW_MS);
    expect(age('2026-03-01T11:59:00Z')).toBe(60);
    expect(age('2026-02-27T12:00:00Z')).toBe(2 * DAY);
    expect([age('2026-03-02T12:00:00Z'), age('not a date'), age('not a date', '2 years ago')]).toEqual([
      0,
      undefined,
      730 * DAY,
    ]);
    expect(age('2026-03-01T11:59:00Z', '2 years ago')).toBe(60);
    expect(age('2026-01-01T12:00:00Z', 'Streamed 5 hours ago')).toBe(5 * HOUR);
    expect(age('2026-01-01T12:00:00Z', 'Premiered Mar 1, 2026')).toBe(59 * DAY);
  });

  it('is never more than its age, by the text of any age, and less by at most the unit that the text names', () => {
    const units = [
      { names: ['second', 'seconds', 's', 'sec'], seconds: 1 },
      { names: ['minute', 'minutes', 'm', 'min'], seconds: 60 },
      { names: ['hour', 'hours', 'h', 'hr'], seconds: HOUR },
      { names: ['day', 'days', 'd'], seconds: DAY },
      { names: ['week', 'weeks', 'w', 'wk'], seconds: 7 * DAY },
      // From the shortest to the longest that a calendar has.
      ...[28, 29, 30, 31].map((days) => ({ names: ['month', 'months', 'mo'], seconds: days * DAY })),
      ...[365, 366].map((days) => ({ names: ['year', 'years', 'y', 'yr'], seconds: days * DAY })),
    ];
    const shown = fc.constantFrom(...units).chain(({ names, seconds }) =>
      fc.record({
        seconds: fc.constant(seconds),
        name: fc.constantFrom(...names),
        ageSeconds: fc.integer({ min: seconds, max: 20 * seconds }),
        prefix: fc.constantFrom('', 'Streamed ', 'Premiered '),
        space: fc.constantFrom('', ' '),
      }),
    );
    fc.assert(
      fc.property(shown, ({ seconds, name, ageSeconds, prefix, space }) => {
        const count = Math.floor(ageSeconds / seconds);
        const age = byText(`${prefix}${count}${space}${name} ago`);
        expect(age).toBeLessThanOrEqual(ageSeconds);
        expect(age).toBeGreaterThan((ageSeconds - seconds) * (28 / 31));
      }),
    );
  });

  it('is 0 for texts of any other form', () => {
    const others = fc.string().filter((text) => !/ago$/i.test(text));
    fc.assert(fc.property(others, (text) => byText(text) === 0));
  });
});

describe('the lifetime of a text', () => {
  it.each<[age: string, seconds: number, lifetime: number]>([
    ['unknown', 0, DAY],
    ['just below three days', 3 * DAY - 1, DAY],
    ['three days', 3 * DAY, 7 * DAY],
    ['years', 900 * DAY, 7 * DAY],
  ])('by the default configuration, for a video whose age is %s', (_age, age, lifetime) => {
    expect(textLifetimeSeconds(7 * DAY, age)).toBe(lifetime);
  });

  it('never shrinks with the age, and is never longer than configured', () => {
    const ages = fc.tuple(fc.nat(20 * DAY), fc.nat(20 * DAY));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 * DAY }), ages, (ttlSeconds, [one, other]) => {
        const [younger, older] = [Math.min(one, other), Math.max(one, other)];
        expect(textLifetimeSeconds(ttlSeconds, younger)).toBeLessThanOrEqual(textLifetimeSeconds(ttlSeconds, older));
        expect(textLifetimeSeconds(ttlSeconds, older)).toBeLessThanOrEqual(ttlSeconds);
      }),
    );
  });
});
