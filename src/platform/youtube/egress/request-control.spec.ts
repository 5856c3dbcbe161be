import { afterEach, describe, expect, it } from '@jest/globals';
import type { ReadingContext } from '../../video-platform.js';
import { FairLimiter } from './fair-limiter.js';
import { type AddressVerdict, RequestControl } from './request-control.js';

const CONCURRENCY = 16;
const SERVED: AddressVerdict = { kind: 'served' };
const DOUBTFUL: AddressVerdict = { kind: 'doubtful', client: 'VISIONOS' };
const refused = (retryAfterSeconds: number | null = null): AddressVerdict => ({ kind: 'refused', retryAfterSeconds });

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

interface Choices {
  ceilingPerMinute?: number;
  rotating?: boolean;
  /** Whether captions follow, which the test controls as `captions`. */
  withCaptions?: boolean;
}

function control({ ceilingPerMinute, rotating = false, withCaptions = false }: Choices = {}) {
  const clock = { nowMs: 0 };
  const pauses: (number | null)[] = [];
  const sent: Sent[] = [];
  const options = {
    limiter: new FairLimiter(CONCURRENCY),
    ...{ rotating, now: () => clock.nowMs },
  };
  const captions = withCaptions
    ? new RequestControl({ ...options, ceilingPerMinute: undefined, onPause: () => undefined })
    : undefined;
  const requests = new RequestControl({
    ...{ ...options, ceilingPerMinute, followedBy: captions },
    onPause: (pauseMs) => pauses.push(pauseMs),
  });
  const start = (subject: string, context: Partial<ReadingContext> = {}, through = requests) => {
    const deadlineAtMs = performance.now() + 60_000;
    const attempt = { subject, context: { signal: caller.signal, deadlineAtMs, fairnessKey: {}, ...context } };
    const send = () =>
      new Promise<{ kind: 'done'; verdict: AddressVerdict }>((resolve) => {
        const respond = async (verdict: AddressVerdict) => {
          sent.splice(sent.indexOf(each), 1);
          resolve({ kind: 'done', verdict });
          await settle();
        };
        const each = { subject, respond };
        sent.push(each);
      });
    const done = through.run(attempt, send, ({ verdict }) => verdict);
    done.catch(() => undefined);
    return done;
  };
  /** Responds to the request that was sent first. */
  const respond = async (verdict: AddressVerdict) => {
    await settle();
    await sent[0]?.respond(verdict);
  };
  const respondToAll = (verdict: AddressVerdict) => Promise.all([...sent].map((each) => each.respond(verdict)));
  /** One request, and its response. */
  const exchange = async (subject: string, verdict: AddressVerdict, through = requests) => {
    const done = start(subject, {}, through);
    await settle();
    await sent.at(-1)?.respond(verdict);
    return done;
  };
  /** Starts videos at once, and lets those run that may. */
  const startAll = async (count: number, name = 'video') => {
    const results = Array.from({ length: count }, (_, index) => start(`${name} ${index}`));
    await settle();
    return results;
  };
  const kinds = async (results: readonly Promise<{ kind: string }>[]) =>
    (await Promise.all(results)).map(({ kind }) => kind);
  const subjects = () => sent.map(({ subject }) => subject);
  return {
    ...{ requests, captions, clock, pauses, sent, subjects, kinds },
    ...{ start, startAll, respond, respondToAll, exchange },
  };
}

describe('slow start', () => {
  it('sends four requests at a time, and doubles them in each round trip up to the limit', async () => {
    const { startAll, sent, respondToAll } = control();
    const results = await startAll(100);
    const rounds: number[] = [];
    while (sent.length > 0) {
      rounds.push(sent.length);
      await respondToAll(SERVED);
    }
    expect(rounds.slice(0, 4)).toEqual([4, 8, 16, 16]);
    expect(await Promise.all(results)).toHaveLength(100);
  });

  it('starts again after a pause', async () => {
    const { startAll, sent, clock, exchange, respondToAll } = control({ ceilingPerMinute: 0 });
    for (let times = 0; times < 20; times += 1) await exchange('served', SERVED);
    void (await startAll(20));
    expect(sent).toHaveLength(16);
    await respondToAll(refused());
    clock.nowMs += 30_000;
    await exchange('probe', SERVED);
    void (await startAll(20, 'later'));
    expect(sent).toHaveLength(5);
  });
});

describe('a refusal of the address', () => {
  it('pauses at once, and what waits is not sent', async () => {
    const { startAll, sent, pauses, kinds, respond, respondToAll } = control();
    const results = await startAll(50);
    await respond(refused());
    expect(sent).toHaveLength(3);
    await respondToAll(refused());
    expect((await kinds(results)).filter((kind) => kind === 'blocked')).toHaveLength(46);
    expect(await results.at(-1)).toEqual({ kind: 'blocked', reason: 'exit-shut', retryAfterSeconds: 30 });
    expect(pauses).toEqual([30_000]);
  });

  it('is probed by one video, for whose result the others wait; each refused probe doubles the pause up to an hour', async () => {
    const { exchange, startAll, kinds, clock, pauses, subjects, respond, respondToAll } = control();
    await exchange('a', refused());
    for (let seconds = 30; seconds < 3_600; seconds = Math.min(3_600, seconds * 2)) {
      clock.nowMs += seconds * 1_000;
      const results = await startAll(3);
      expect(subjects()).toEqual(['video 0']);
      await respond(refused());
      expect(await kinds(results)).toEqual(['done', 'blocked', 'blocked']);
    }
    expect(pauses.at(-1)).toBe(3_600_000);
    clock.nowMs += 3_600_000;
    const results = await startAll(3);
    await respond(SERVED);
    await respondToAll(SERVED);
    expect(await kinds(results)).toEqual(['done', 'done', 'done']);
    expect(pauses.at(-1)).toBeNull();
    await exchange('b', refused());
    expect(pauses.at(-1)).toBe(30_000);
  });

  it('is probed by the next video when the probe ended without a response that says anything', async () => {
    const { requests, exchange, start, clock, subjects, respond } = control();
    await exchange('a', refused());
    clock.nowMs += 30_000;
    const probed = start('probe');
    const next = start('next');
    await respond({ kind: 'nothing' });
    await probed;
    expect(subjects()).toEqual([]);
    requests.leave({ subject: 'probe' });
    expect(subjects()).toEqual(['next']);
    await respond(SERVED);
    await next;
    expect(requests.open).toBe(true);
  });
});

describe('a refusal of a client', () => {
  it('is asked about by one video, while the others wait; when another client is served, all go on', async () => {
    const { exchange, startAll, kinds, subjects, respondToAll } = control();
    await exchange('asker', DOUBTFUL);
    const others = await startAll(3);
    expect(subjects()).toEqual([]);
    await exchange('asker', SERVED);
    expect(subjects()).toEqual(['video 0', 'video 1', 'video 2']);
    await respondToAll(SERVED);
    expect(await kinds(others)).toEqual(['done', 'done', 'done']);
  });

  it('pauses the egress when two videos in a row and a second client are refused, and the others end as blocked', async () => {
    const { requests, exchange, startAll, kinds, pauses } = control();
    await exchange('a', DOUBTFUL);
    await exchange('a', DOUBTFUL);
    requests.leave({ subject: 'a' });
    expect(pauses).toEqual([]);
    await exchange('b', DOUBTFUL);
    const waiting = await startAll(3);
    expect(pauses).toEqual([]);
    await exchange('b', { kind: 'doubtful', client: 'ANDROID' });
    expect(pauses).toEqual([30_000]);
    expect(await kinds(waiting)).toEqual(['blocked', 'blocked', 'blocked']);
  });

  it('pauses the egress when two videos in a row were refused by the only client there is', async () => {
    const { requests, exchange, pauses } = control();
    for (const subject of ['a', 'b']) {
      await exchange(subject, DOUBTFUL);
      requests.leave({ subject });
    }
    expect(pauses).toEqual([30_000]);
  });

  it('does not pause the egress for one video, however often it is refused', async () => {
    const { requests, exchange, pauses } = control();
    for (let times = 0; times < 5; times += 1) {
      await exchange('odd', DOUBTFUL);
      requests.leave({ subject: 'odd' });
    }
    await exchange('a', SERVED);
    expect([pauses, requests.open]).toEqual([[], true]);
  });
});

it('texts that are withheld pause the egress for five videos in a row, and not for one video', async () => {
  const { requests, exchange, pauses } = control();
  const withhold = async (subject: string) => {
    await exchange(subject, { kind: 'withheld' });
    requests.leave({ subject });
  };
  for (const video of ['a', 'b', 'c', 'd', 'd', 'd']) await withhold(video);
  await exchange('e', SERVED);
  for (const video of ['a', 'b', 'c', 'd', 'd', 'd']) await withhold(video);
  expect(pauses).toEqual([]);
  await withhold('e');
  expect(pauses).toEqual([30_000]);
});

describe('the rate', () => {
  it('makes a request busy whose turn comes after its deadline, and does not send it', async () => {
    const { start, sent } = control({ ceilingPerMinute: 60 });
    const deadlineAtMs = performance.now() + 5_000;
    const results = Array.from({ length: 20 }, (_, index) => start(`${index}`, { deadlineAtMs }));
    await settle();
    expect(sent).toHaveLength(4);
    expect(await results.at(-1)).toMatchObject({ kind: 'busy' });
  });

  it('lets the second request of a video go at once: without it the first was sent in vain', async () => {
    const { exchange, start, subjects, respond } = control({ ceilingPerMinute: 10 });
    await exchange('a', SERVED);
    void start('b');
    const second = start('a');
    await settle();
    expect(subjects()).toEqual(['a']);
    await respond(SERVED);
    await expect(second).resolves.toMatchObject({ kind: 'done' });
  });

  it('counts the calls that take turns: a small call is not busy for a large one', async () => {
    const { start, exchange } = control({ ceilingPerMinute: 60 });
    for (let index = 0; index < 6; index += 1) await exchange(`${index}`, SERVED);
    const large = {};
    const deadlineAtMs = performance.now() + 10_000;
    const ends: string[] = [];
    const startFor = (fairnessKey: object, subject: string) =>
      start(subject, { fairnessKey, deadlineAtMs }).then(
        ({ kind }) => ends.push(kind),
        () => undefined,
      );
    for (let index = 0; index < 20; index += 1) void startFor(large, `large ${index}`);
    await settle();
    expect(ends).toEqual(Array(12).fill('busy'));
    void startFor({}, 'small');
    await settle();
    expect(ends).toHaveLength(12);
  });
});

describe('captions that follow each player', () => {
  it('block the player while they are paused, and are probed by one video', async () => {
    const { requests, captions, clock, exchange, startAll, kinds, subjects, respond } = control({ withCaptions: true });
    await exchange('a', refused(60), captions);
    expect(requests.pauseRemainingMs).toBe(60_000);
    expect(await kinds(await startAll(2))).toEqual(['blocked', 'blocked']);
    clock.nowMs += 60_000;
    const results = await startAll(3);
    expect(subjects()).toEqual(['video 0']);
    await respond(SERVED);
    expect(subjects()).toEqual([]);
    await exchange('video 0', refused(), captions);
    expect(await kinds(results)).toEqual(['done', 'blocked', 'blocked']);
  });
});

it('a gateway is not paused by refusals of its addresses, unless a hundred in a row are refused', async () => {
  const { pauses, exchange } = control({ rotating: true });
  for (let index = 0; index < 300; index += 1) await exchange('a', index % 50 === 0 ? SERVED : DOUBTFUL);
  expect(pauses).toEqual([]);
  for (let index = 0; index < 100; index += 1) await exchange('a', refused());
  expect(pauses).toEqual([30_000]);
});

it('requests of a job leave the turn to those of calls', async () => {
  const { start, startAll, subjects, respond } = control();
  void (await startAll(4));
  void start('job', { background: true });
  void start('call');
  await respond({ kind: 'nothing' });
  expect(subjects()).toContain('call');
  expect(subjects()).not.toContain('job');
});
