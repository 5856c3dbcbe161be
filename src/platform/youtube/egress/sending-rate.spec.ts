import { describe, expect, it } from '@jest/globals';
import { SendingRate } from './sending-rate.js';

const MINUTE_MS = 60_000;

function rateWith(ceilingPerMinute?: number) {
  const clock = { nowMs: 1_000_000 };
  const rate = new SendingRate({ ceilingPerMinute }, () => clock.nowMs);
  /** Sends and serves requests over some seconds, for which others wait unless it is light use. */
  const serve = (count: number, seconds: number, isLight = false) => {
    const demandSinceMs = isLight ? null : clock.nowMs;
    for (let index = 0; index < count; index += 1) {
      clock.nowMs += (seconds * 1_000) / count;
      rate.spend(demandSinceMs);
      rate.grow();
    }
  };
  /** Sends and serves all that the rate allows, for some minutes. Returns how many requests. */
  const serveAllowed = (minutes: number) => {
    let count = 0;
    for (const untilMs = clock.nowMs + minutes * MINUTE_MS; clock.nowMs < untilMs; clock.nowMs += 100)
      for (; rate.waitMs(false) === 0; count += 1) serve(1, 0);
    return count;
  };
  return { rate, clock, serve, serveAllowed };
}

describe('the rate', () => {
  it('is unlimited until a refusal', () => {
    const { rate, serve } = rateWith();
    serve(10_000, 60);
    expect([rate.perMinute, rate.waitMs(true, 1_000)]).toEqual([null, 0]);
  });

  it('is not learned from a refusal after a few requests: the address was refused before', () => {
    const { rate, serve } = rateWith();
    serve(9, 9);
    rate.decrease();
    expect(rate.perMinute).toBeNull();
    // What was sent before that refusal does not count for the next one.
    serve(9, 9);
    rate.decrease();
    expect(rate.perMinute).toBeNull();
    serve(10, 10);
    rate.decrease();
    expect(rate.perMinute).toBe(12);
  });

  it('is not learned from a refusal in light use, for which nothing waited', () => {
    const { rate, serve } = rateWith();
    serve(1_000, 1_250, true);
    serve(9, 9);
    rate.decrease();
    expect(rate.perMinute).toBeNull();
  });

  it('is at least twelve a minute', () => {
    const { rate, serve, serveAllowed } = rateWith();
    serve(90, 90 * 60);
    rate.decrease();
    expect(rate.perMinute).toBe(12);
    expect(serveAllowed(10)).toBeGreaterThanOrEqual(120);
    rate.decrease();
    expect(rate.perMinute).toBe(12);
  });

  it('doubles in three minutes of demand up to half of what was refused, and regains the rest in an hour', () => {
    const { rate, clock, serve, serveAllowed } = rateWith();
    serve(1_190, 600);
    rate.decrease();
    expect(rate.perMinute).toBe(12);
    serveAllowed(3);
    expect(rate.perMinute).toBeCloseTo(24, 0);
    serveAllowed(3);
    expect((rate.perMinute ?? 0) / 48).toBeCloseTo(1, 1);
    serveAllowed(3);
    // Half of 119 after 7 minutes, and linearly for two of them.
    expect(rate.perMinute).toBeGreaterThan(59);
    expect(rate.perMinute).toBeLessThan(64);
    // Nothing is learned while nobody asks.
    clock.nowMs += 24 * 60 * MINUTE_MS;
    expect(rate.perMinute).toBeLessThan(64);
    serveAllowed(60);
    expect((rate.perMinute ?? 0) / 119).toBeCloseTo(1, 1);
    serveAllowed(60);
    expect((rate.perMinute ?? 0) / 178).toBeCloseTo(1, 1);
  });

  it('counts only the time in which there was demand', () => {
    const { rate, clock, serve, serveAllowed } = rateWith();
    for (let burst = 0; burst < 6; burst += 1) {
      serve(100, 50);
      clock.nowMs += 60 * MINUTE_MS;
    }
    rate.decrease();
    serveAllowed(8);
    // Half of 120 a minute, and not of the 10 a minute of all six hours.
    expect(rate.perMinute).toBeGreaterThan(50);
  });

  it.each([
    ['of 0 is never limited', 0, null, null],
    ['is never exceeded', 6, 6, 6],
    ['above the learned rate does not raise it', 6_000, 6_000, 12],
  ])('with a ceiling that %s', (_case, ceiling, before, after) => {
    const { rate, serve } = rateWith(ceiling);
    expect(rate.perMinute).toBe(before);
    serve(100, 70);
    rate.decrease();
    expect(rate.perMinute).toBe(after);
  });

  it('grows to its ceiling and sends no more in a minute', () => {
    const { rate, serve, serveAllowed } = rateWith(30);
    serve(100, 10);
    rate.decrease();
    serveAllowed(20);
    expect(rate.perMinute).toBe(30);
    expect(serveAllowed(10) / 10).toBeCloseTo(30, 0);
  });

  it('says when a request may be sent after others, and frees what was counted and not sent', () => {
    const { rate, serve } = rateWith(60);
    serve(6, 0);
    expect(rate.waitMs(false)).toBeCloseTo(1_000);
    expect(rate.waitMs(false, 4)).toBeCloseTo(5_000);
    rate.refund();
    expect(rate.waitMs(false)).toBeCloseTo(0);
  });

  it('leaves a part of a burst to calls', () => {
    const { rate, serve } = rateWith(120);
    serve(10, 0);
    expect(rate.waitMs(false)).toBe(0);
    expect(rate.waitMs(true)).toBeGreaterThan(0);
  });

  describe('of background requests apart', () => {
    const apart = () => {
      const clock = { nowMs: 1_000_000 };
      const rate = new SendingRate({ background: 'apart' }, () => clock.nowMs);
      /** Sends and serves all that is allowed to background requests, for some minutes, at most 50 a second. Returns how many. */
      const serveAllowed = (minutes: number) => {
        let count = 0;
        for (const untilMs = clock.nowMs + minutes * MINUTE_MS; clock.nowMs < untilMs; clock.nowMs += 20) {
          if (rate.waitMs(true) > 0) continue;
          rate.spend(clock.nowMs - 20, true);
          rate.grow();
          count += 1;
        }
        return count;
      };
      /** The same of what is admitted, beside something each second. */
      const admitted = (minutes: number, beside: () => void = () => undefined) => {
        let count = 0;
        for (const untilMs = clock.nowMs + minutes * MINUTE_MS; clock.nowMs < untilMs; clock.nowMs += 20) {
          if (clock.nowMs % 1_000 === 0) beside();
          if (!rate.admitsBackground) continue;
          rate.spend(clock.nowMs - 20, true);
          rate.grow();
          count += 1;
        }
        return count;
      };
      return { rate, clock, serveAllowed, admitted };
    };

    it('admits forty at once, then twenty a minute, which doubles in three minutes beside calls', () => {
      const { rate, admitted } = apart();
      const call = () => rate.spend(null);
      expect(admitted(1 / 60, call)).toBe(40);
      expect(admitted(1, call)).toBeCloseTo(22, -1);
      admitted(2, call);
      expect(admitted(1, call) / 44).toBeCloseTo(1, 1);
      expect([rate.perMinute, rate.waitMs(true)]).toEqual([null, 0]);
    });

    it('admits more from half a minute without calls on, and with the next call as many as at the start', () => {
      const { rate, admitted } = apart();
      rate.spend(null);
      expect(admitted(0.5)).toBeLessThan(60);
      expect(admitted(1)).toBeGreaterThan(300);
      const call = () => rate.spend(null);
      admitted(1 / 60, call);
      expect(admitted(1, call)).toBeLessThan(30);
    });

    it('grows on beside a call now and then, from what it has learned beside calls', () => {
      const { rate, admitted } = apart();
      for (let minutes = 0; minutes < 60; minutes += 1) {
        rate.spend(null);
        admitted(35 / 60);
      }
      rate.spend(null);
      expect(admitted(0.4)).toBeGreaterThan(60);
    });

    it('is as before when a request that was counted in advance is not sent', () => {
      const { rate, admitted } = apart();
      for (let count = 0; count < 40; count += 1) rate.spend(null, true);
      expect(rate.admitsBackground).toBe(false);
      for (let count = 0; count < 40; count += 1) rate.refund(true);
      expect(admitted(1 / 60)).toBe(40);
    });

    it('does not grow while only calls use the address', () => {
      const { rate, clock, admitted } = apart();
      for (const untilMs = clock.nowMs + 60 * MINUTE_MS; clock.nowMs < untilMs; clock.nowMs += 5_000) {
        rate.spend(null);
        rate.grow();
      }
      expect(admitted(1, () => rate.spend(null))).toBeLessThan(70);
    });

    it('is learned from their refusal, which limits no call', () => {
      const { rate, serveAllowed } = apart();
      expect(serveAllowed(0.5)).toBe(1_500);
      rate.decrease();
      expect([rate.perMinute, rate.waitMs(false, 1_000)]).toEqual([12, 0]);
      expect(serveAllowed(1)).toBeLessThan(20);
    });

    it('never looks for more than two thirds of what was refused, counted over a minute', () => {
      const { rate, serveAllowed } = apart();
      // A second of 50.
      expect(serveAllowed(1 / 60)).toBe(50);
      rate.decrease();
      serveAllowed(60 * 2);
      expect(serveAllowed(10) / 10).toBeLessThan(36);
      expect(rate.perMinute).toBeCloseTo((2 / 3) * 50, -1);
    });

    it('leaves the last third of what calls may send at once to them', () => {
      const { rate, clock, serveAllowed } = apart();
      for (let index = 0; index < 1_200; index += 1) rate.spend((clock.nowMs += 100) - 100);
      rate.decrease();
      for (let index = 0; index < 1_200; index += 1, clock.nowMs += 1_000) rate.grow();
      const burst = (10 * (rate.perMinute ?? 0)) / 60;
      serveAllowed(1);
      let calls = 0;
      for (; rate.waitMs(false) === 0; calls += 1) rate.spend(null);
      expect(burst).toBeGreaterThan(12);
      expect(calls).toBeGreaterThanOrEqual(Math.floor(burst / 3));
    });
  });
});
