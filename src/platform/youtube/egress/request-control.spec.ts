import { afterEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { EgressPool } from './egress-pool.js';
import { type AddressVerdict, RequestControl } from './request-control.js';
import type { RequestScope } from './request-pipeline.js';
import { RetryBudget } from './retry.js';

const CONCURRENCY = 16;
const SERVED: AddressVerdict = { kind: 'served' };
const refused = (retryAfterSeconds: number | null = null): AddressVerdict => ({ kind: 'refused', retryAfterSeconds });
const doubtful = (client = 'VISIONOS'): AddressVerdict => ({ kind: 'doubtful', client });

/** A request that was sent, whose response the test gives. */
interface Sent {
  subject: string;
  respond: (verdict: AddressVerdict) => Promise<void>;
}

/** Lets everything run that waits for nothing else. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** The caller of every request of a test; it is aborted when the test ends. */
let caller = new AbortController();
afterEach(() => {
  caller.abort();
  caller = new AbortController();
});

function control(choices: { ceilingPerMinute?: number; rotating?: boolean } = {}) {
  const clock = { nowMs: 0 };
  const pauses: (number | null)[] = [];
  const requests = new RequestControl({
    ...{ concurrencyMax: CONCURRENCY, ceilingPerMinute: undefined, rotating: false, ...choices },
    now: () => clock.nowMs,
    onPause: (pauseMs) => pauses.push(pauseMs),
  });
  const egress = new EgressPool({
    ...{ registry: new Registry(), proxyUrls: [], connectionsMax: 1, connectTimeoutMs: 1 },
  }).take('video')?.egress;
  if (!egress) throw new Error('There is no egress.');
  const sent: Sent[] = [];
  const scopeOf = (subject: string, context: Partial<RequestScope['context']> = {}): RequestScope => ({
    ...{ egress, subject, budget: new RetryBudget(0) },
    context: {
      ...{ signal: caller.signal, deadlineAtMs: performance.now() + 60_000, fairnessKey: {} },
      ...context,
    },
  });
  const send = (scope: RequestScope) => {
    const done = requests.run(
      scope,
      () =>
        new Promise<{ kind: 'done'; verdict: AddressVerdict }>((resolve) => {
          const respond = async (verdict: AddressVerdict) => {
            sent.splice(sent.indexOf(each), 1);
            resolve({ kind: 'done', verdict });
            await settle();
          };
          const each = { subject: scope.subject, respond };
          sent.push(each);
        }),
      ({ verdict }) => verdict,
    );
    done.catch(() => undefined);
    return done;
  };
  const start = (subject: string, context?: Partial<RequestScope['context']>) => send(scopeOf(subject, context));
  /** Responds to the request that was sent first. */
  const respond = async (verdict: AddressVerdict) => {
    await settle();
    await sent[0]?.respond(verdict);
  };
  const subjects = () => sent.map(({ subject }) => subject);
  /** Sends and serves one request after another. */
  const serve = async (count: number) => {
    for (let index = 0; index < count; index += 1) {
      const done = start(`served ${index}`);
      await settle();
      await sent.at(-1)?.respond(SERVED);
      await done;
    }
  };
  return { requests, clock, pauses, sent, scopeOf, send, start, respond, subjects, serve };
}

/** Starts this many videos at once and lets those run that may. */
async function startAll<T>(start: (subject: string) => Promise<T>, count: number) {
  const results = Array.from({ length: count }, (_, index) => start(`video ${index}`));
  await settle();
  return results;
}

describe('slow start', () => {
  it('sends four requests at a time, and doubles them in each round trip up to the limit', async () => {
    const { start, sent } = control();
    const results = await startAll(start, 100);
    const rounds: number[] = [];
    while (sent.length > 0) {
      rounds.push(sent.length);
      await Promise.all([...sent].map(({ respond }) => respond(SERVED)));
    }
    expect(rounds.slice(0, 4)).toEqual([4, 8, 16, 16]);
    expect(await Promise.all(results)).toHaveLength(100);
  });

  it('starts again after a pause', async () => {
    const { start, sent, clock, serve, requests, respond } = control();
    await serve(20);
    void (await startAll(start, 20));
    expect(sent).toHaveLength(16);
    await respond(refused());
    await Promise.all([...sent].map(({ respond }) => respond(refused())));
    clock.nowMs += 30_000;
    await serve(1);
    expect(requests.open).toBe(true);
    void (await startAll(start, 20));
    expect(sent.length).toBeLessThanOrEqual(5);
  });
});

describe('a refusal of the address', () => {
  it('pauses at once, and what waits is not sent', async () => {
    const { start, sent, pauses, respond } = control();
    const results = await startAll(start, 50);
    await respond(refused());
    expect(sent).toHaveLength(3);
    await Promise.all([...sent].map(({ respond }) => respond(refused())));
    const ends = await Promise.all(results);
    expect(ends.filter(({ kind }) => kind === 'blocked')).toHaveLength(46);
    expect(ends.at(-1)).toEqual({ kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: 30 });
    expect(pauses).toEqual([30_000]);
  });

  it('lasts for Retry-After', async () => {
    const { start, requests, respond } = control();
    void start('a');
    await respond(refused(7));
    expect(requests.pauseRemainingMs).toBe(7_000);
  });

  it('is probed by one video, for whose result the others wait; each refused probe doubles the pause up to an hour', async () => {
    const { start, sent, clock, pauses, subjects, respond } = control();
    void start('a');
    await respond(refused());
    for (let seconds = 30; seconds < 3_600; seconds = Math.min(3_600, seconds * 2)) {
      clock.nowMs += seconds * 1_000;
      const results = await startAll(start, 3);
      expect(subjects()).toEqual(['video 0']);
      await respond(refused());
      expect((await Promise.all(results)).map(({ kind }) => kind)).toEqual(['done', 'blocked', 'blocked']);
    }
    expect(pauses.at(-1)).toBe(3_600_000);
    clock.nowMs += 3_600_000;
    const results = await startAll(start, 3);
    await respond(SERVED);
    await Promise.all([...sent].map(({ respond }) => respond(SERVED)));
    expect((await Promise.all(results)).map(({ kind }) => kind)).toEqual(['done', 'done', 'done']);
    expect(pauses.at(-1)).toBeNull();
    void start('b');
    await settle();
    await respond(refused());
    expect(pauses.at(-1)).toBe(30_000);
  });

  it('is probed by the next video when the probe ended without a response that says anything', async () => {
    const { requests, send, scopeOf, start, clock, subjects, respond } = control();
    void start('a');
    await respond(refused());
    clock.nowMs += 30_000;
    const probe = scopeOf('probe');
    const probed = send(probe);
    const next = start('next');
    await settle();
    expect(requests.isProbe(probe)).toBe(true);
    await respond({ kind: 'nothing' });
    await probed;
    expect(subjects()).toEqual([]);
    requests.leave(probe);
    await settle();
    expect(subjects()).toEqual(['next']);
    await respond(SERVED);
    await next;
    expect(requests.open).toBe(true);
  });
});

describe('a refusal of a client', () => {
  it('is asked about by one video, while the others wait; when another client is served, all go on', async () => {
    const { requests, send, scopeOf, start, sent, subjects, respond } = control();
    const asker = scopeOf('asker');
    const first = send(asker);
    await respond(doubtful('VISIONOS'));
    await first;
    const others = await startAll(start, 3);
    const second = send(asker);
    await settle();
    expect(subjects()).toEqual(['asker']);
    await respond(SERVED);
    await second;
    expect(requests.open).toBe(true);
    expect(subjects()).toEqual(['video 0', 'video 1', 'video 2']);
    await Promise.all([...sent].map(({ respond }) => respond(SERVED)));
    await Promise.all(others);
  });

  it('pauses the egress when a second client and a second video are refused, and the others end as blocked', async () => {
    const { send, scopeOf, start, pauses, respond } = control();
    const [asker, other] = [scopeOf('asker'), scopeOf('other')];
    const [one, two] = [send(asker), send(other)];
    await respond(doubtful('VISIONOS'));
    await respond(doubtful('VISIONOS'));
    await Promise.all([one, two]);
    const waiting = [...(await startAll(start, 3)), send(other)];
    const last = send(asker);
    await settle();
    await respond(doubtful('ANDROID'));
    await last;
    expect(pauses).toEqual([30_000]);
    expect((await Promise.all(waiting)).map(({ kind }) => kind)).toEqual(['blocked', 'blocked', 'blocked', 'blocked']);
  });

  it('does not pause the egress for one video, however often it is refused', async () => {
    const { requests, send, scopeOf, pauses, serve, respond } = control();
    for (let times = 0; times < 5; times += 1) {
      const odd = scopeOf('odd');
      for (const client of ['VISIONOS', 'ANDROID']) {
        const done = send(odd);
        await settle();
        await respond(doubtful(client));
        await done;
      }
      requests.leave(odd);
    }
    await serve(1);
    expect([pauses, requests.open]).toEqual([[], true]);
  });

  it('pauses the egress when two videos in a row were refused by the only client there is', async () => {
    const { requests, send, scopeOf, pauses, respond } = control();
    for (const video of ['a', 'b']) {
      const scope = scopeOf(video);
      const done = send(scope);
      await settle();
      await respond(doubtful());
      await done;
      requests.leave(scope);
    }
    expect(pauses).toEqual([30_000]);
  });
});

describe('the rate', () => {
  /** Serves requests over some seconds, then is refused, paused for 30 s and served again. */
  async function refusedAfter(count: number, seconds: number, choices = {}) {
    const opened = control(choices);
    const { clock, serve, start, respond } = opened;
    for (let index = 0; index < count; index += 1) {
      await serve(1);
      clock.nowMs += (seconds * 1_000) / count;
    }
    const last = start('refused');
    await settle();
    await respond(refused());
    await last;
    clock.nowMs += 30_000;
    await serve(1);
    return opened;
  }

  it('is unlimited until the first refusal, and then seven tenths of what was served until the end of the pause', async () => {
    const { requests, serve } = control();
    await serve(50);
    expect(requests.perMinute).toBeNull();
    const after = await refusedAfter(100, 70);
    expect(after.requests.perMinute).toBeCloseTo(0.6 * 60, 0);
  });

  it('is not learned from a refusal after a few requests: the address was refused before', async () => {
    expect((await refusedAfter(5, 5)).requests.perMinute).toBeNull();
  });

  it('is not limited with a ceiling of 0, and never above one that is set', async () => {
    expect((await refusedAfter(100, 70, { ceilingPerMinute: 0 })).requests.perMinute).toBeNull();
    expect(control({ ceilingPerMinute: 12 }).requests.perMinute).toBe(12);
    expect((await refusedAfter(100, 70, { ceilingPerMinute: 6_000 })).requests.perMinute).toBeCloseTo(0.6 * 60, 0);
  });

  it('is back at the refused one after an hour of full use, and decreases with each refusal', async () => {
    const { requests, clock, serve, start, respond } = await refusedAfter(100, 70);
    const first = requests.perMinute ?? 0;
    for (let second = 0; second < 3_600; second += 1) {
      clock.nowMs += 1_000;
      if (requests.waitMs({ fairnessKey: {} }) === 0) await serve(1);
    }
    expect((requests.perMinute ?? 0) / first).toBeGreaterThan(1.2);
    expect((requests.perMinute ?? 0) / first).toBeLessThan(1.8);
    const before = requests.perMinute ?? 0;
    clock.nowMs += 10_000;
    void start('refused');
    await settle();
    await respond(refused());
    expect(requests.perMinute).toBeCloseTo(0.6 * before, 5);
  });

  it('makes a request busy whose turn comes after its deadline, and does not send it', async () => {
    const { start, clock, sent } = control({ ceilingPerMinute: 60 });
    const deadlineAtMs = performance.now() + 5_000;
    const results = Array.from({ length: 20 }, (_, index) => start(`${index}`, { deadlineAtMs }));
    await settle();
    expect(sent).toHaveLength(4);
    const busy = await results.at(-1);
    expect(busy).toMatchObject({ kind: 'busy' });
    expect(clock.nowMs).toBe(0);
  });

  it('lets the second request of a video go at once: without it the first was sent in vain', async () => {
    const { send, scopeOf, sent, respond } = control({ ceilingPerMinute: 10 });
    const scope = scopeOf('a');
    const first = send(scope);
    await settle();
    await respond(SERVED);
    await first;
    const leaving = new AbortController();
    const waiting = send(scopeOf('b', { signal: leaving.signal }));
    const second = send(scope);
    await settle();
    expect(sent.map(({ subject }) => subject)).toEqual(['a']);
    await respond(SERVED);
    await second;
    leaving.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
  });
});

describe('a gateway', () => {
  it('is not paused by refusals of its addresses, unless nearly all of many are refused', async () => {
    const { start, pauses, respond } = control({ rotating: true });
    const end = async (verdict: AddressVerdict) => {
      void start('a');
      await respond(verdict);
    };
    for (let index = 0; index < 300; index += 1) await end(index % 10 === 0 ? SERVED : doubtful());
    expect(pauses).toEqual([]);
    for (let index = 0; index < 200; index += 1) await end(refused());
    expect(pauses).toEqual([30_000]);
  });
});

it('requests of a job leave the turn to those of calls', async () => {
  const { start, subjects, respond } = control();
  for (const running of ['1', '2', '3', '4']) void start(running);
  void start('job', { background: true });
  void start('call');
  await settle();
  await respond({ kind: 'nothing' });
  expect(subjects()).toContain('call');
  expect(subjects()).not.toContain('job');
});
