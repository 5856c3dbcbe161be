import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ReadingContext } from '../../video-platform.js';
import { CircuitBreaker } from './circuit-breaker.js';
import type { PacedKind } from './egress-state.js';
import { RequestPacer, type PaceCeilings, type PacedTurn } from './request-pacer.js';
import { StoredEgressState } from './stored-egress-state.js';

const now = () => performance.now();

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function pacerWith(limits: Partial<PaceCeilings> = {}, rotating = false) {
  const stored = new StoredEgressState();
  const breaker = new CircuitBreaker(
    now,
    (openForMs) => {
      if (openForMs !== null) pacer.releasePaused();
    },
    undefined,
    undefined,
    stored,
  );
  const pacer = new RequestPacer(stored, breaker, { player: undefined, captions: undefined, ...limits }, rotating, now);
  return { pacer, breaker, stored };
}

const SERVED_CAPTIONS = { kind: 'ok', media: 'json', body: '{}' } as const;
const SERVED_PLAYER = { kind: 'json', value: {}, whole: false } as const;

/** Serves requests of one kind, each in an attempt of its own. */
async function serve(pacer: RequestPacer, kind: PacedKind, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) {
    const own = attempt();
    await pacer.waitForTurn(kind, call(), own);
    pacer.learn(kind, kind === 'player' ? SERVED_PLAYER : SERVED_CAPTIONS, own);
    if (kind === 'player') pacer.recordServed();
  }
}

/** A pacer whose captions are limited to one a second, with none available. */
async function limitedPacer() {
  const made = pacerWith();
  await serve(made.pacer, 'captions', 100);
  await jest.advanceTimersByTimeAsync(1_000);
  made.pacer.learn('captions', { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 96 });
  await jest.advanceTimersByTimeAsync(96_000);
  made.breaker.admit()?.succeeded();
  while (made.pacer.captionsWaitMs(call()) === 0) await made.pacer.waitForTurn('captions', call());
  return made;
}

function call(choices: Partial<ReadingContext> = {}): ReadingContext {
  const signal = new AbortController().signal;
  return { signal, deadlineAtMs: performance.now() + 45_000, fairnessKey: {}, ...choices };
}

const attempt = () => ({
  probe: false,
  claimProbe: () => Promise.resolve(false),
  succeeded: () => undefined,
  blocked: () => undefined,
});

const kindOf = (turn: PacedTurn) => (turn.send ? 'sent' : turn.response.kind);

describe('RequestPacer', () => {
  it('delays nothing before the first refusal', async () => {
    const { pacer } = pacerWith();
    const turns = Array.from({ length: 500 }, () => pacer.waitForTurn('player', call()));
    expect((await Promise.all(turns)).every(({ send }) => send)).toBe(true);
    expect(pacer.perMinute('player')).toBeNull();
  });

  it('sends the second player request of an attempt at once, and makes others wait for it', async () => {
    const made = pacerWith();
    const own = attempt();
    await serve(made.pacer, 'player', 100);
    await jest.advanceTimersByTimeAsync(1_000);
    made.pacer.learn('player', { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 96 });
    await jest.advanceTimersByTimeAsync(96_000);
    made.breaker.admit()?.succeeded();
    await made.pacer.waitForTurn('player', call(), own);
    while (made.pacer.videoWaitMs(call()) === 0) await made.pacer.waitForTurn('player', call());
    const waitMs = made.pacer.videoWaitMs(call());
    expect(kindOf(await made.pacer.waitForTurn('player', call(), own))).toBe('sent');
    expect(made.pacer.videoWaitMs(call())).toBeGreaterThan(waitMs);
    const third = made.pacer.waitForTurn('player', call({ deadlineAtMs: performance.now() + 1_500 }), own);
    expect(kindOf(await third)).toBe('busy');
  });

  it('after a refusal, sends what the platform served on average', async () => {
    const { pacer } = await limitedPacer();
    expect(pacer.perMinute('captions')).toBeCloseTo(60, 0);
    const sent: number[] = [];
    const startMs = performance.now();
    for (let request = 0; request < 3; request += 1)
      void pacer.waitForTurn('captions', call()).then(() => sent.push((performance.now() - startMs) / 1000));
    await jest.advanceTimersByTimeAsync(4_000);
    expect(sent.map(Math.round)).toEqual([1, 2, 3]);
  });

  it('ends requests at once that would have their turn after the deadline, and says when that is', async () => {
    const { pacer } = await limitedPacer();
    const turns = Array.from({ length: 60 }, () => pacer.waitForTurn('captions', call()));
    const last = await turns[59];
    if (!last || last.send) throw new Error('It was sent.');
    expect(last.response.kind).toBe('busy');
    expect(last.response.retryAfterSeconds).toBeGreaterThanOrEqual(44);
    expect(last.response.retryAfterSeconds).toBeLessThanOrEqual(47);
    expect(pacer.queued('captions')).toBeLessThanOrEqual(45);
    await jest.advanceTimersByTimeAsync(60_000);
    expect((await Promise.all(turns)).filter(({ send }) => send).length).toBeGreaterThanOrEqual(42);
  });

  it('ends a player request whose captions would come too late', async () => {
    const { pacer } = await limitedPacer();
    const shared = call();
    for (let request = 0; request < 50; request += 1) void pacer.waitForTurn('captions', shared, attempt());
    expect(kindOf(await pacer.waitForTurn('player', shared, attempt()))).toBe('busy');
    // Another call takes turns with it.
    expect(kindOf(await pacer.waitForTurn('player', call(), attempt()))).toBe('sent');
  });

  it('expects the captions of a video once, however many clients are asked, and none for an exact date', async () => {
    const { pacer } = await limitedPacer();
    await jest.advanceTimersByTimeAsync(1_000);
    const waitsMs = [pacer.captionsWaitMs(call())];
    const video = attempt();
    for (let client = 0; client < 3; client += 1) await pacer.waitForTurn('player', call(), video);
    waitsMs.push(pacer.captionsWaitMs(call()));
    await pacer.waitForTurn('player', call());
    waitsMs.push(pacer.captionsWaitMs(call()));
    expect(waitsMs.map((ms) => Math.round(ms / 1_000))).toEqual([0, 1, 1]);
    await pacer.waitForTurn('captions', call(), video);
    expect(Math.round(pacer.captionsWaitMs(call()) / 1_000)).toBe(1);
  });

  describe('with background work', () => {
    const job = () => call({ background: true });

    it('sends the requests of a call first, and does not count those of jobs in its estimate', async () => {
      const { pacer } = await limitedPacer();
      const served: string[] = [];
      for (let request = 0; request < 40; request += 1) {
        void pacer.waitForTurn('captions', job(), attempt()).then(({ send }) => send && served.push('job'));
        void pacer.waitForTurn('player', job(), attempt());
      }
      expect(Math.round(pacer.videoWaitMs(call()) / 1_000)).toBe(1);
      expect(pacer.videoWaitMs(job())).toBeGreaterThan(40_000);
      const own = attempt();
      const shortly = call({ deadlineAtMs: performance.now() + 5_000 });
      expect(kindOf(await pacer.waitForTurn('player', shortly, own))).toBe('sent');
      void pacer.waitForTurn('captions', shortly, own).then(({ send }) => send && served.push('call'));
      await jest.advanceTimersByTimeAsync(1_100);
      expect(served).toEqual(['call']);
    });

    it('leaves a quarter of the burst to calls, and uses the whole rate', async () => {
      const { pacer } = pacerWith({ player: 120 });
      let [forJobs, forCalls] = [0, 0];
      for (let request = 0; request < 200; request += 1)
        void pacer.waitForTurn('player', job()).then(({ send }) => (forJobs += Number(send)));
      await jest.advanceTimersByTimeAsync(0);
      // A ceiling of 120 a minute has a burst of 12.
      expect(forJobs).toBe(9);
      await jest.advanceTimersByTimeAsync(30_000);
      expect(forJobs).toBe(69);
      for (let request = 0; request < 3; request += 1)
        void pacer.waitForTurn('player', call()).then(({ send }) => (forCalls += Number(send)));
      await jest.advanceTimersByTimeAsync(0);
      expect([forJobs, forCalls]).toEqual([69, 3]);
    });

    it.each([1, 7, 60])('serves jobs at a ceiling of %d a minute', async (ceiling) => {
      const { pacer } = pacerWith({ player: ceiling });
      let sent = 0;
      const patient = { background: true, deadlineAtMs: Infinity };
      for (let request = 0; request < 5; request += 1)
        void pacer.waitForTurn('player', call(patient)).then(({ send }) => (sent += Number(send)));
      await jest.advanceTimersByTimeAsync((5 * 60_000) / ceiling + 60_000);
      expect(sent).toBe(5);
    });
  });

  it('403 pauses nothing at once', () => {
    const { pacer, breaker } = pacerWith();
    for (const kind of ['player', 'captions'] as const)
      pacer.learn(kind, { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null }, attempt());
    expect(breaker.open).toBe(false);
  });

  it('serves calls in turns', async () => {
    const { pacer } = await limitedPacer();
    const [large, small] = [call(), call()];
    const served: string[] = [];
    for (let request = 0; request < 20; request += 1)
      void pacer.waitForTurn('captions', large).then(() => served.push('large'));
    for (let request = 0; request < 2; request += 1)
      void pacer.waitForTurn('captions', small).then(() => served.push('small'));
    await jest.advanceTimersByTimeAsync(5_000);
    expect(served.slice(0, 4)).toEqual(['large', 'small', 'large', 'small']);
  });

  it('a waiting request whose turn other calls delay past its deadline is busy before it', async () => {
    const { pacer } = await limitedPacer();
    const mine = call({ deadlineAtMs: performance.now() + 5_000 });
    const turns = [1, 2, 3].map(() => pacer.waitForTurn('captions', mine));
    for (let other = 0; other < 10; other += 1) void pacer.waitForTurn('captions', call());
    await jest.advanceTimersByTimeAsync(4_100);
    expect((await Promise.all(turns)).map(kindOf)).toEqual(['sent', 'busy', 'busy']);
  });

  it('an abort removes a waiting request', async () => {
    const { pacer } = await limitedPacer();
    const leaving = new AbortController();
    const waiting = pacer.waitForTurn('captions', call({ signal: leaving.signal }));
    leaving.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    expect(pacer.queued('captions')).toBe(0);
  });

  it('a refusal ends the waiting of the requests behind it, and those in flight count once', async () => {
    const { pacer, breaker } = await limitedPacer();
    const waiting = [1, 2, 3].map(() => pacer.waitForTurn('captions', call()));
    const rate = pacer.perMinute('captions') ?? 0;
    for (let inFlight = 0; inFlight < 5; inFlight += 1)
      pacer.learn('captions', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: null });
    expect((await Promise.all(waiting)).map(kindOf)).toEqual(['blocked', 'blocked', 'blocked']);
    expect(breaker.pauseRemainingMs).toBe(330_000);
    expect(pacer.perMinute('captions')).toBeGreaterThan(rate / 3);
  });

  it('captions are requested while players are refused, and not the other way round', async () => {
    const { pacer } = pacerWith();
    pacer.learn('player', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: null });
    expect(kindOf(await pacer.waitForTurn('captions', call()))).toBe('sent');
    expect(kindOf(await pacer.waitForTurn('player', call()))).toBe('blocked');
    const other = pacerWith().pacer;
    other.learn('captions', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: null });
    expect(kindOf(await other.waitForTurn('player', call()))).toBe('blocked');
  });

  it('a probe whose captions are refused ends the block of players and starts one of captions', async () => {
    const { pacer, breaker, stored } = pacerWith();
    pacer.learn('player', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: 60 });
    await jest.advanceTimersByTimeAsync(60_000);
    const probe = breaker.admit();
    if (!probe) throw new Error('It is blocked.');
    pacer.learn('player', SERVED_PLAYER, probe);
    pacer.learn('captions', { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: null }, probe);
    expect(stored.pause).toMatchObject({ by: 'captions', pauseMs: 330_000, probesRefused: 0 });
  });

  it('counts what was served, not what was refused', async () => {
    const { pacer, stored } = pacerWith();
    await serve(pacer, 'player', 30);
    for (let refused = 0; refused < 100; refused += 1) {
      const own = attempt();
      await pacer.waitForTurn('player', call(), own);
      // A bot check is a complete response.
      pacer.learn('player', { kind: 'json', value: {}, whole: false }, own);
    }
    expect([pacer.answeredMany('player'), stored.current.paces.player.answered]).toEqual([false, 30]);
  });

  it('a ceiling applies from the start', async () => {
    const { pacer } = pacerWith({ player: 60 });
    const turns = Array.from({ length: 100 }, () => pacer.waitForTurn('player', call()));
    await jest.advanceTimersByTimeAsync(60_000);
    const sent = (await Promise.all(turns)).filter(({ send }) => send).length;
    expect(sent).toBeGreaterThanOrEqual(45);
    expect(sent).toBeLessThanOrEqual(52);
    expect(pacer.perMinute('player')).toBe(60);
  });

  it('0 turns the pace off', async () => {
    const { pacer, breaker } = pacerWith({ captions: 0 });
    pacer.learn('captions', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: 1 });
    await jest.advanceTimersByTimeAsync(1_000);
    breaker.admit()?.succeeded();
    const turns = Array.from({ length: 500 }, () => pacer.waitForTurn('captions', call()));
    expect((await Promise.all(turns)).every(({ send }) => send)).toBe(true);
    expect(pacer.perMinute('captions')).toBeNull();
  });

  it('an address of a gateway that is refused pauses nothing', () => {
    const { pacer, breaker } = pacerWith({}, true);
    pacer.learn('player', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: null });
    expect(breaker.open).toBe(false);
  });
});
