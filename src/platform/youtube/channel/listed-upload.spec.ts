import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../../test/texts/any-text.js';
import {
  isAnnouncementText,
  isPublishedText,
  readDurationSeconds,
  readInstant,
  readViewCount,
} from './listed-upload.js';

describe('view counts', () => {
  it.each([
    ['No views', 0],
    ['1 view', 1],
    ['950 views', 950],
    ['1,234 views', 1234],
    ['106k views', 106_000],
    ['1.05B views', 1_050_000_000],
  ])('reads %s', (text, count) => {
    expect(readViewCount(text)).toBe(count);
  });

  it.each([
    '',
    'views',
    '1984',
    '106k',
    '1,23,456 views',
    '12,34 views',
    '1.234 views',
    '1.2 lakh views',
    '88 watching',
    '1 234 views',
    '-1 views',
    '9'.repeat(30) + ' views',
    '4 months ago',
  ])('returns null for %j', (text) => {
    expect(readViewCount(text)).toBeNull();
  });

  it('reads every count that is written in full', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (count) => {
        fc.pre(count !== 1 && count < 1e15);
        expect(readViewCount(`${count.toLocaleString('en-US')} views`)).toBe(count);
      }),
    );
  });
});

describe('durations', () => {
  it.each([
    ['0:45', 45],
    ['12:05', 725],
    ['1:02:03', 3723],
    ['123:00:00', 442_800],
  ])('reads %s', (text, seconds) => {
    expect(readDurationSeconds(text)).toBe(seconds);
  });

  it.each(['', '45', '1:2', '1:60', '61:00', '1:2:03', '1:60:00', 'LIVE', ':30', '-0:45', '1:00:00:00'])(
    'returns null for %j',
    (text) => {
      expect(readDurationSeconds(text)).toBeNull();
    },
  );
});

describe('dates', () => {
  it('distinguishes publish dates from announcements', () => {
    const published = [
      '4 months ago',
      '1 day ago',
      '17 hours ago',
      'Streamed 6 months ago',
      'Premiered 2 years ago',
      'Premiered May 21, 2026',
      '2mo ago',
      '5 hr ago',
      '3 wk. ago',
      '1y ago',
      '12 min ago',
      '30 sec. ago',
      'Streamed 6d ago',
      'Streamed live 2 days ago',
      'an hour ago',
      'Just now',
      'Today',
      'Yesterday',
      'Streamed yesterday',
    ];
    const announced = ['Premieres 6/1/26, 8:00 PM', 'Scheduled for 6/1/26', 'Upcoming'];
    expect(published.map(isPublishedText)).toEqual(published.map(() => true));
    expect(announced.map(isAnnouncementText)).toEqual(announced.map(() => true));
    expect(
      [...announced, '43k views', ' • ', 'a long time ago in a galaxy', '5 x ago', '2 mo'].some(isPublishedText),
    ).toBe(false);
    expect([...published, '43k views', 'Upcoming artists'].some(isAnnouncementText)).toBe(false);
  });

  it.each([
    ['2015-01-27T21:14:36-08:00', '2015-01-28T05:14:36Z'],
    ['2026-05-21T11:22:05+00:00', '2026-05-21T11:22:05Z'],
    ['2026-05-21T11:22:05.999Z', '2026-05-21T11:22:05Z'],
  ])('converts %s to UTC', (text, utc) => {
    expect(readInstant(text)).toBe(utc);
  });

  it.each(['2015-01-27', '2015-01-27T21:14:36', '2015-13-27T21:14:36Z', 'May 21, 2026', '', '+275760-09-13T00:00:00Z'])(
    'does not read %j as an exact time',
    (text) => {
      expect(readInstant(text)).toBeNull();
    },
  );
});

it('no reader throws or returns an invalid value, for any text', () => {
  fc.assert(
    fc.property(anyText(), (text) => {
      for (const number of [readViewCount(text), readDurationSeconds(text)]) {
        expect(number === null || (Number.isSafeInteger(number) && number >= 0)).toBe(true);
      }
      expect(() => [readInstant(text), isPublishedText(text), isAnnouncementText(text)]).not.toThrow();
    }),
  );
});
