import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CircuitBreaker, EGRESS_LIMITS } from './circuit-breaker.js';
import {
  paceAfterAnswers,
  paceAfterRecovery,
  paceAfterRefusal,
  paceAfterSending,
  paceWaitMs,
  UNLIMITED_PACE,
  type PaceState,
} from './request-pace.js';
import { StoredEgressState } from './stored-egress-state.js';

const DAY_SECONDS = 86_400;
const LATENCY_SECONDS = 0.2;
const CONCURRENCY = 16;
const MINUTE = 60;
const HOUR = 3_600;

/** A budget of the platform: a token bucket, and a block when it is empty. Times are seconds. */
interface PlatformBudget {
  burst: number;
  perSecond: number;
  block: number;
  /** Every request during the block starts it anew. */
  extended?: boolean;
}

class Platform {
  private available: number;
  private atSeconds = 0;
  private blockedUntil = -1;

  constructor(private readonly budget: PlatformBudget) {
    this.available = budget.burst;
  }

  serves(atSeconds: number): boolean {
    const { burst, perSecond, block, extended } = this.budget;
    this.available = Math.min(burst, this.available + (atSeconds - this.atSeconds) * perSecond);
    this.atSeconds = atSeconds;
    const blocked = atSeconds < this.blockedUntil;
    if (this.available >= 1 && !blocked) {
      this.available -= 1;
      return true;
    }
    if (!blocked || extended) this.blockedUntil = atSeconds + block;
    return false;
  }
}

/**
 * One day of calls for 25 to 100 videos, which call again until they are served, against a budget.
 *
 * @param demand how much is requested, as a multiple of what the budget allows
 */
function simulateDay(budget: PlatformBudget, demand: number) {
  const platform = new Platform(budget);
  let seconds = 0;
  const nowMs = () => seconds * 1000;
  const stored = new StoredEgressState();
  const breaker = new CircuitBreaker(nowMs, undefined, EGRESS_LIMITS, undefined, stored);
  const waitMs = () => paceWaitMs(stored.current.paces.captions, 1, nowMs());
  const random = randomFrom(7);
  const inFlight: { endsAt: number; served: boolean; settle: (served: boolean) => void }[] = [];
  let [wanted, waiting, served, refused, nextCall] = [0, 0, 0, 0, 0];
  const send = (settle: (served: boolean) => void): void => {
    waiting -= 1;
    inFlight.push({ endsAt: seconds + LATENCY_SECONDS, served: platform.serves(seconds), settle });
  };
  const refusal = { address: true, retryAfterSeconds: null, by: 'captions' as const };
  while (seconds < DAY_SECONDS) {
    for (; nextCall <= seconds; nextCall += (-Math.log(1 - random()) * 62) / (budget.perSecond * demand)) {
      const videos = 25 + Math.floor(random() * 76);
      [wanted, waiting] = [wanted + videos, waiting + videos];
    }
    // In order of their ends, because all take the same time.
    while (inFlight[0] && inFlight[0].endsAt <= seconds) {
      const [ended] = inFlight.splice(0, 1);
      if (ended?.served) served += 1;
      else refused += 1;
      ended?.settle(ended.served);
    }
    while (waiting > 0 && inFlight.length < CONCURRENCY) {
      if (breaker.open) {
        const probe = breaker.admit();
        if (!probe) break;
        send((ok) => (ok ? probe.succeeded() : probe.blocked('', refusal)));
      } else if (waitMs() > 0) break;
      else {
        stored.record({ kind: 'sent', paced: 'captions', count: 1, atMs: nowMs() });
        send((ok) => {
          if (ok) stored.record({ kind: 'answered', paced: 'captions', count: 1, atMs: nowMs() });
          else breaker.refuse(refusal);
        });
      }
    }
    const next = [nextCall, inFlight[0]?.endsAt ?? Infinity];
    if (breaker.open && breaker.pauseRemainingMs > 0) next.push(seconds + breaker.pauseRemainingMs / 1000);
    else if (!breaker.open && waiting > 0 && inFlight.length < CONCURRENCY) next.push(seconds + waitMs() / 1000);
    seconds = Math.max(seconds + 0.001, Math.min(...next));
  }
  const allowed = Math.min(wanted, budget.burst + budget.perSecond * DAY_SECONDS);
  return { servedShare: served / allowed, refusedShare: refused / (served + refused) };
}

/** Numbers from 0 to 1, the same in every run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

describe('a day at twice the demand that the budget allows', () => {
  it.each<[string, PlatformBudget, number]>([
    ['1,000 an hour, blocked for an hour', { burst: 1_000, perSecond: 1_000 / HOUR, block: HOUR }, 0.95],
    ['300 an hour, blocked for an hour', { burst: 300, perSecond: 300 / HOUR, block: HOUR }, 0.95],
    ['300 an hour, blocked for half an hour', { burst: 300, perSecond: 300 / HOUR, block: HOUR / 2 }, 0.95],
    ['300 an hour, blocked for ten minutes', { burst: 300, perSecond: 300 / HOUR, block: 10 * MINUTE }, 0.95],
    ['60 in five minutes, blocked for five', { burst: 60, perSecond: 0.2, block: 5 * MINUTE }, 0.95],
    [
      '60 in five minutes, five more for each hit',
      { burst: 60, perSecond: 0.2, block: 5 * MINUTE, extended: true },
      0.95,
    ],
    ['2 a minute, 20 at once, blocked for ten', { burst: 20, perSecond: 2 / 60, block: 10 * MINUTE }, 0.92],
    ['30 a minute, 200 at once, blocked for a minute', { burst: 200, perSecond: 0.5, block: MINUTE }, 0.95],
    // Blocks that outlast the bucket's refill cost what it would have refilled; two of them are needed to learn the rate.
    ['60 in five minutes, blocked for ten', { burst: 60, perSecond: 0.2, block: 10 * MINUTE }, 0.88],
    [
      '1,000 an hour, an hour more for each hit',
      { burst: 1_000, perSecond: 1_000 / HOUR, block: HOUR, extended: true },
      0.93,
    ],
    ['60 in five minutes, blocked for an hour', { burst: 60, perSecond: 0.2, block: HOUR }, 0.6],
  ])('%s', (_name, budget, servedMin) => {
    const { servedShare, refusedShare } = simulateDay(budget, 2);
    expect(servedShare).toBeGreaterThanOrEqual(servedMin);
    expect(refusedShare).toBeLessThanOrEqual(0.05);
  });

  it('at most 5 % are refused, for any budget', () => {
    const budgets = fc.record({
      burst: fc.integer({ min: 60, max: 1_000 }),
      perSecond: fc.double({ min: 0.05, max: 0.5, noNaN: true }),
      // A block that is extended by hits and longer than the longest pause never ends.
      block: fc.integer({ min: 30, max: HOUR }),
      extended: fc.boolean(),
    });
    fc.assert(
      fc.property(budgets, fc.constantFrom(1, 2), (budget, demand) => {
        expect(simulateDay(budget, demand).refusedShare).toBeLessThanOrEqual(0.05);
      }),
      { numRuns: 8, seed: 11 },
    );
  });
});

describe('a day at half the demand that the budget allows', () => {
  it.each<[string, PlatformBudget]>([
    ['1,000 an hour, blocked for an hour', { burst: 1_000, perSecond: 1_000 / HOUR, block: HOUR }],
    ['300 an hour, blocked for ten minutes', { burst: 300, perSecond: 300 / HOUR, block: 10 * MINUTE }],
    ['60 in five minutes, blocked for five', { burst: 60, perSecond: 0.2, block: 5 * MINUTE }],
  ])('%s', (_name, budget) => {
    const { servedShare, refusedShare } = simulateDay(budget, 0.5);
    expect(servedShare).toBeGreaterThanOrEqual(0.95);
    expect(refusedShare).toBeLessThanOrEqual(0.05);
  });
});

const recovered = (state: PaceState, refusedAtMs: number, nowMs: number) =>
  paceAfterRecovery(state, { refusedAtMs, endedAtMs: nowMs, nowMs });

/** The pace of players after `count` requests in an hour, a refused address, and a first probe some time later. */
function paceAfterBlock(count: number, probedAfterMs: number) {
  const stored = new StoredEgressState();
  let nowMs = 1_000;
  const breaker = new CircuitBreaker(() => nowMs, undefined, undefined, undefined, stored);
  for (let sent = 0; sent < count; sent += 1) {
    stored.record({ kind: 'sent', paced: 'player', count: 1, atMs: nowMs });
    stored.record({ kind: 'answered', paced: 'player', count: 1, atMs: nowMs });
    nowMs += (HOUR * 1_000) / count;
  }
  breaker.refuse({ address: true, retryAfterSeconds: null, by: 'player' });
  nowMs += probedAfterMs;
  breaker.admit()?.succeeded();
  return stored.current.paces.player;
}

describe('the state of a pace', () => {
  it('learns the same whether the egress is used after the pause at once or only the next morning', () => {
    const [atOnce, later] = [paceAfterBlock(300, 330_000), paceAfterBlock(300, 15 * HOUR * 1_000)];
    expect((later.ratePerSecond ?? 0) * HOUR).toBeGreaterThan(250);
    expect([later.ratePerSecond, later.burst, later.growthSeconds]).toEqual([
      atOnce.ratePerSecond,
      atOnce.burst,
      atOnce.growthSeconds,
    ]);
    expect(later.available).toBe(later.burst);
  });

  it('what replicas sent during an outage of Redis delays the next request by minutes, not hours', () => {
    const pace = paceAfterBlock(300, 330_000);
    const nowMs = pace.atMs + 3 * HOUR * 1_000;
    const merged = paceAfterSending(pace, 700, nowMs);
    expect(paceWaitMs(merged, 1, nowMs)).toBeLessThan(5 * MINUTE * 1_000);
    expect(paceWaitMs(merged, 1, nowMs)).toBeGreaterThan(0);
  });

  it('learns nothing from a refusal after a few requests, and no less than the smallest budget after some more', () => {
    expect(paceAfterBlock(5, 330_000)).toMatchObject({ ratePerSecond: null, answered: 0 });
    const { ratePerSecond, burst } = paceAfterBlock(12, 330_000);
    expect((ratePerSecond ?? 0) * HOUR).toBeCloseTo(60);
    expect(burst).toBeGreaterThanOrEqual(10);
  });

  it('limits nothing before the first refusal', () => {
    const sent = paceAfterSending(UNLIMITED_PACE, 10_000, 1_000);
    expect(paceWaitMs(paceAfterAnswers(sent, 10_000), 10_000, 1_000)).toBe(0);
  });

  it('after the first refusal, allows what the platform allowed on average, pause included', () => {
    const sent = paceAfterSending(UNLIMITED_PACE, 650, 1_000);
    const answered = paceAfterAnswers(sent, 600);
    const state = recovered(paceAfterRefusal(answered, 11_000), 11_000, 301_000);
    expect(state.ratePerSecond).toBeCloseTo((0.97 * 600) / 300);
    expect(paceWaitMs(state, 1, 301_000)).toBe(0);
    expect(paceWaitMs(state, 1_000, 301_000)).toBeGreaterThan(0);
  });

  it('is always a finite rate above zero, in any order of events', () => {
    const event = fc.record({
      kind: fc.constantFrom('sent', 'answered', 'refused', 'recovered'),
      count: fc.integer({ min: 1, max: 500 }),
      afterMs: fc.integer({ min: 0, max: 4_000_000 }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let state: PaceState = UNLIMITED_PACE;
        let [nowMs, refusedAtMs] = [1_000_000, 0];
        for (const { kind, count, afterMs } of events) {
          nowMs += afterMs;
          if (kind === 'sent') state = paceAfterSending(state, count, nowMs);
          else if (kind === 'answered') state = paceAfterAnswers(state, count);
          else if (refusedAtMs === 0) [state, refusedAtMs] = [paceAfterRefusal(state, nowMs), nowMs];
          else [state, refusedAtMs] = [recovered(state, refusedAtMs, nowMs), 0];
          if (state.ratePerSecond !== null) expect(state.ratePerSecond).toBeGreaterThan(0);
          expect(Object.values(state).every((value) => value === null || Number.isFinite(value))).toBe(true);
          expect(paceWaitMs(state, 1, nowMs)).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });
});
