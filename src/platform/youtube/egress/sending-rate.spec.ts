import { describe, expect, it } from '@jest/globals';
import { SendingRate } from './sending-rate.js';

function rateWith(ceilingPerMinute?: number) {
  const clock = { nowMs: 0 };
  const rate = new SendingRate(ceilingPerMinute, () => clock.nowMs);
  /** Sends and serves requests over some seconds. */
  const serve = (count: number, seconds: number) => {
    for (let index = 0; index < count; index += 1) {
      rate.spend(1);
      rate.grow();
      clock.nowMs += (seconds * 1_000) / count;
    }
  };
  /** Serves requests, is refused and paused for 30 s, and served again. */
  const refuseAfter = (count: number, seconds: number) => {
    serve(count, seconds);
    rate.decrease();
    clock.nowMs += 30_000;
    rate.estimate();
  };
  return { rate, clock, serve, refuseAfter };
}

describe('the rate', () => {
  it('is unlimited until the first refusal, and then six tenths of what was served until the end of the pause', () => {
    const { rate, refuseAfter } = rateWith();
    expect([rate.perMinute, rate.waitMs(true, 1_000)]).toEqual([null, 0]);
    refuseAfter(100, 70);
    expect(rate.perMinute).toBeCloseTo(0.6 * 60, 5);
  });

  it('is not learned from a refusal after a few requests: the address was refused before', () => {
    const { rate, refuseAfter } = rateWith();
    refuseAfter(5, 5);
    expect(rate.perMinute).toBeNull();
  });

  it.each([
    ['of 0 is never limited', 0, null, null],
    ['is never exceeded', 12, 12, 12],
    ['above the learned rate does not raise it', 6_000, 6_000, 36],
  ])('with a ceiling that %s', (_case, ceiling, before, after) => {
    const { rate, refuseAfter } = rateWith(ceiling);
    expect(rate.perMinute).toBe(before);
    refuseAfter(100, 70);
    expect(rate.perMinute).toBe(after);
  });

  it('is back at the refused one after an hour of full use, and decreases with each refusal', () => {
    const { rate, clock, serve, refuseAfter } = rateWith();
    refuseAfter(100, 70);
    for (let second = 0; second < 3_600; second += 1) {
      clock.nowMs += 1_000;
      if (rate.waitMs(false) === 0) serve(1, 0);
    }
    const regrown = rate.perMinute ?? 0;
    expect(regrown / 36).toBeGreaterThan(1.2);
    expect(regrown / 36).toBeLessThan(1.8);
    rate.decrease();
    expect(rate.perMinute).toBeCloseTo(0.6 * regrown, 5);
  });

  it('leaves a part of a burst to calls', () => {
    const { rate, serve } = rateWith(120);
    serve(10, 0);
    expect(rate.waitMs(false)).toBe(0);
    expect(rate.waitMs(true)).toBeGreaterThan(0);
  });
});
