import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CircuitBreaker, EGRESS_LIMITS, refusedShare, type BreakerLimits } from './circuit-breaker.js';

function breakerAt(limits?: BreakerLimits) {
  const clock = { nowMs: 0 };
  const changes: (number | null)[] = [];
  const breaker = new CircuitBreaker(
    () => clock.nowMs,
    (openForMs) => changes.push(openForMs),
    limits,
  );
  const block = (...subjects: string[]) => subjects.forEach((subject) => breaker.admit()?.blocked(subject));
  return { breaker, clock, changes, block };
}

describe('CircuitBreaker', () => {
  it('opens after five refusals of different videos in a row', () => {
    const { breaker, block, changes } = breakerAt();
    block('a', 'b', 'c', 'd');
    expect(breaker.open).toBe(false);
    block('e');
    expect(breaker.open).toBe(true);
    expect(breaker.admit()).toBeNull();
    expect(changes).toEqual([30_000]);
  });

  it('marks earlier admissions as obsolete, and a probe as a probe', () => {
    const { breaker, block, clock } = breakerAt();
    const earlier = breaker.admit();
    expect([earlier?.probe, earlier?.isObsolete()]).toEqual([false, false]);
    block('a', 'b', 'c', 'd', 'e');
    expect([earlier?.isObsolete(), breaker.blocked]).toEqual([true, true]);
    clock.nowMs += 30_000;
    expect(breaker.blocked).toBe(false);
    const probe = breaker.admit();
    expect([probe?.probe, probe?.isObsolete(), breaker.blocked]).toEqual([true, false, true]);
    probe?.succeeded();
    expect([earlier?.isObsolete(), breaker.blocked]).toEqual([false, false]);
  });

  it('an earlier admission becomes the probe after the pause, when no other replica probes', async () => {
    const clock = { nowMs: 0 };
    const claims = { granted: false, released: 0 };
    const release = () => Promise.resolve(void (claims.released += 1));
    const breaker = new CircuitBreaker(
      () => clock.nowMs,
      ...([undefined, undefined, undefined, undefined] as const),
      () => Promise.resolve(claims.granted ? release : null),
    );
    const earlier = breaker.admit();
    breaker.refuse({ address: true, retryAfterSeconds: 60, by: null });
    expect(await earlier?.claimProbe(1_000)).toBe(false);
    clock.nowMs += 60_000;
    expect(await earlier?.claimProbe(1_000)).toBe(false);
    expect([earlier?.probe, breaker.blocked]).toEqual([false, false]);
    claims.granted = true;
    const claiming = earlier?.claimProbe(1_000);
    expect(breaker.admit()).toBeNull();
    expect(await claiming).toBe(true);
    expect([earlier?.probe, claims.released]).toEqual([true, 0]);
    earlier?.succeeded();
    expect([breaker.open, claims.released]).toEqual([false, 1]);
  });

  it('all requests of an attempt that becomes the probe are sent, also those that ask while it is claimed', async () => {
    const clock = { nowMs: 0 };
    const breaker = new CircuitBreaker(() => clock.nowMs);
    const [earlier, other] = [breaker.admit(), breaker.admit()];
    if (!earlier || !other) throw new Error('It is blocked.');
    breaker.refuse({ address: true, retryAfterSeconds: 60, by: 'captions' });
    clock.nowMs += 60_000;
    const claims = [earlier, earlier, other].map((admission) => admission.claimProbe(1_000));
    expect(await Promise.all(claims)).toEqual([true, true, false]);
  });

  it('an admission that ends while the probe is claimed leaves it to others', async () => {
    const clock = { nowMs: 0 };
    const breaker = new CircuitBreaker(() => clock.nowMs);
    const earlier = breaker.admit();
    breaker.refuse({ address: true, retryAfterSeconds: 60, by: null });
    clock.nowMs += 60_000;
    const claiming = earlier?.claimProbe(1_000);
    earlier?.abandoned();
    expect(await claiming).toBe(false);
    expect(breaker.admit()?.probe).toBe(true);
  });

  it('does not open for repeated refusals of one video', () => {
    const { breaker, block } = breakerAt();
    block(...Array.from({ length: 50 }, () => 'a'));
    expect(breaker.open).toBe(false);
  });

  it('a response in between resets the count', () => {
    const { breaker, block } = breakerAt();
    block('a', 'b', 'c', 'd');
    breaker.admit()?.succeeded();
    block('e', 'f', 'g', 'h');
    expect(breaker.open).toBe(false);
  });

  it('admits one probe after the pause, and closes when it succeeds', () => {
    const { breaker, clock, block, changes } = breakerAt();
    block('a', 'b', 'c', 'd', 'e');
    clock.nowMs = 29_999;
    expect(breaker.admit()).toBeNull();
    clock.nowMs = 30_000;
    const probe = breaker.admit();
    expect(probe).not.toBeNull();
    expect(breaker.admit()).toBeNull();
    probe?.succeeded();
    expect(breaker.open).toBe(false);
    expect(changes).toEqual([30_000, null]);
  });

  it('doubles the pause with each refused probe, up to an hour', () => {
    const { clock, block, changes } = breakerAt();
    block('a', 'b', 'c', 'd', 'e');
    for (let probes = 0; probes < 8; probes += 1) {
      clock.nowMs += changes.at(-1) ?? 0;
      block('a');
    }
    expect(changes.map((ms) => (ms ?? 0) / 1000)).toEqual([30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
  });

  it('a probe without a result allows the next one', () => {
    const { breaker, clock, block } = breakerAt();
    block('a', 'b', 'c', 'd', 'e');
    clock.nowMs = 30_000;
    breaker.admit()?.abandoned();
    expect(breaker.admit()).not.toBeNull();
  });

  it('requests in flight when it opened neither extend the pause nor close it', () => {
    const { breaker, block, changes } = breakerAt();
    const [late, later] = [breaker.admit(), breaker.admit()];
    block('a', 'b', 'c', 'd', 'e');
    late?.blocked('f');
    expect(changes).toEqual([30_000]);
    later?.succeeded();
    expect(breaker.open).toBe(true);
  });

  it('pauses for five and a half minutes after a refused address, and for as long as Retry-After says', () => {
    const address = breakerAt();
    address.breaker.refuse({ address: true, retryAfterSeconds: null, by: 'player' });
    const stated = breakerAt();
    stated.breaker.refuse({ address: true, retryAfterSeconds: 7, by: 'player' });
    stated.clock.nowMs = 7_000;
    stated.breaker.admit()?.blocked('a', { address: true, retryAfterSeconds: 9, by: 'player' });
    expect([address.changes, stated.changes]).toEqual([[330_000], [7_000, 9_000]]);
  });

  it('pauses at first as long as the last block took that outlasted its first pause', () => {
    const { breaker, clock, block, changes } = breakerAt(EGRESS_LIMITS);
    block('a', 'b', 'c', 'd', 'e');
    clock.nowMs += 30_000;
    block('a');
    clock.nowMs += 60_000;
    breaker.admit()?.succeeded();
    block('a', 'b', 'c', 'd', 'e');
    expect(changes).toEqual([30_000, 60_000, null, 90_000]);
  });

  it('does not count the time in which nobody used the egress as part of the block', () => {
    const { breaker, clock, block, changes } = breakerAt(EGRESS_LIMITS);
    block('a', 'b', 'c', 'd', 'e');
    clock.nowMs += 30_000;
    block('a');
    clock.nowMs += 10 * 3_600_000;
    breaker.admit()?.succeeded();
    block('a', 'b', 'c', 'd', 'e');
    expect(changes).toEqual([30_000, 60_000, null, 90_000]);
  });

  it('a breaker of anything else than an egress always starts with its first pause', () => {
    const { breaker, clock, block, changes } = breakerAt({ blocksToOpen: 1, openFirstMs: 30_000, openMaxMs: 40_000 });
    block('a');
    clock.nowMs += 30_000;
    block('a');
    clock.nowMs += 40_000;
    breaker.admit()?.succeeded();
    block('a');
    expect(changes).toEqual([30_000, 40_000, null, 30_000]);
  });

  it.each([undefined, 200])('judges a gateway by the share of refused attempts: %p', (attempts) => {
    const opened: (number | null)[] = [];
    const breaker = new CircuitBreaker(
      () => 0,
      (openForMs) => opened.push(openForMs),
      undefined,
      refusedShare(attempts),
    );
    for (let video = 0; video < 1_000; video += 1) {
      const admission = breaker.admit();
      if (video % 10 < 4) admission?.succeeded();
      else admission?.blocked(`video ${video}`);
    }
    expect(opened).toEqual([]);
    for (let video = 0; video < (attempts ?? 50) - 1; video += 1) breaker.admit()?.blocked(`video ${video}`);
    expect(opened).toEqual([30_000]);
  });

  it('never stays open forever and never admits two probes, in any order of events', () => {
    const event = fc.constantFrom('admit', 'answered', 'blocked', 'left', 'wait');
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.nat(7)), { maxLength: 200 }), (events) => {
        const { breaker, clock } = breakerAt();
        const cached: (NonNullable<ReturnType<CircuitBreaker['admit']>> & { probe: boolean })[] = [];
        for (const [name, n] of events) {
          if (name === 'wait') clock.nowMs += n * 20_000;
          else if (name === 'admit') {
            const probe = breaker.open;
            const admission = breaker.admit();
            if (admission) cached.push({ ...admission, probe });
            if (breaker.open) expect(cached.filter((one) => one.probe).length).toBeLessThanOrEqual(1);
          } else {
            const [one] = cached.splice(n % Math.max(1, cached.length), 1);
            if (name === 'blocked') one?.blocked(`video ${n}`);
            else if (name === 'answered') one?.succeeded();
            else one?.abandoned();
            if (!breaker.open) cached.forEach((other) => (other.probe = false));
          }
        }
        cached.forEach((one) => one.abandoned());
        clock.nowMs += 3_600_000;
        expect(breaker.admit()).not.toBeNull();
      }),
    );
  });
});
