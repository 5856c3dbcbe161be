import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DataApiRest, nextPacificMidnight } from './data-api-rest.js';

const HOUR_MS = 3_600_000;

describe('the next midnight in Pacific time', () => {
  it.each([
    ['in winter', '2026-01-15T07:59:59Z', '2026-01-15T08:00:00Z'],
    ['in summer', '2026-07-15T07:00:00Z', '2026-07-16T07:00:00Z'],
    ['before the clocks go forward', '2026-03-08T07:30:00Z', '2026-03-08T08:00:00Z'],
    ['after the clocks went forward', '2026-03-08T11:00:00Z', '2026-03-09T07:00:00Z'],
    ['before the clocks go back', '2026-11-01T06:30:00Z', '2026-11-01T07:00:00Z'],
    ['during the hour that occurs twice', '2026-11-01T09:30:00Z', '2026-11-02T08:00:00Z'],
    ['at the end of a year', '2026-12-31T23:00:00Z', '2027-01-01T08:00:00Z'],
  ])('%s', (_, now, midnight) => {
    expect(new Date(nextPacificMidnight(Date.parse(now))).toISOString()).toBe(midnight.replace('Z', '.000Z'));
  });

  it('is a midnight within the next 25 hours, at any time', () => {
    const clock = new Intl.DateTimeFormat('en-GB', { timeZone: 'America/Los_Angeles', timeStyle: 'medium' });
    const times = fc.date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(times, (time) => {
        const midnightMs = nextPacificMidnight(time.getTime());
        expect(clock.format(midnightMs)).toBe('00:00:00');
        expect(midnightMs).toBeGreaterThan(time.getTime());
        expect(midnightMs - time.getTime()).toBeLessThanOrEqual(25 * HOUR_MS);
      }),
    );
  });
});

describe('the rest of the Data API', () => {
  function open(start = '2026-11-22T03:00:00Z') {
    let nowMs = Date.parse(start);
    const events: unknown[] = [];
    const rest = new DataApiRest(
      (...event) => void events.push(event),
      () => void events.push('back'),
      () => nowMs,
    );
    return { rest, events, passSeconds: (seconds: number) => (nowMs += seconds * 1000) };
  }

  it('lasts until midnight in Pacific time when the quota is exceeded', () => {
    const { rest, events, passSeconds } = open();
    rest.rest('quota', 'quotaExceeded');
    expect(events).toEqual([['quota', 'quotaExceeded', 5 * 3_600]]);
    passSeconds(5 * 3_600 - 1);
    expect(rest.resting).toBe(true);
    passSeconds(1);
    expect([rest.resting, rest.reason]).toEqual([false, 'quota']);
    rest.answered();
    expect([rest.reason, events.at(-1)]).toEqual([null, 'back']);
  });

  it.each([
    ['rate', 60],
    ['failed', 120],
    ['refused', 600],
  ] as const)('after %s lasts %s s and is reported once, however often it is tried again', (reason, seconds) => {
    const { rest, events, passSeconds } = open();
    for (let times = 0; times < 3; times += 1) {
      rest.rest(reason, 'x');
      passSeconds(seconds - 1);
      expect(rest.resting).toBe(true);
      passSeconds(1);
      expect(rest.resting).toBe(false);
    }
    expect(events).toEqual([[reason, 'x', seconds]]);
  });

  it('is not ended or shortened by answers to requests that were sent before it', () => {
    const { rest, events } = open();
    rest.rest('quota', 'quotaExceeded');
    rest.rest('failed', 'timeout');
    rest.answered();
    expect([rest.resting, rest.reason, events.length]).toEqual([true, 'quota', 1]);
  });
});
