import { afterEach, describe, expect, it } from '@jest/globals';
import type { ReadingContext } from '../../video-platform.js';
import { FairLimiter } from './fair-limiter.js';
import { type AddressVerdict, type ControlledAttempt, type ControlledKind, RequestControl } from './request-control.js';
import { SendingRate } from './sending-rate.js';

const CONCURRENCY = 16;
const SERVED: AddressVerdict = { kind: 'served' };
const DOUBTFUL: AddressVerdict = { kind: 'doubtful' };
const NOTHING: AddressVerdict = { kind: 'nothing' };
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
  playersPerMinute?: number;
  captionsPerMinute?: number;
  rotating?: boolean;
}

interface Starting extends Partial<ReadingContext> {
  kind?: ControlledKind;
  /** By default the one attempt at the subject. */
  attempt?: ControlledAttempt;
}

/** The control of the videos of an egress. */
function control({ playersPerMinute, captionsPerMinute, rotating = false }: Choices = {}) {
  const clock = { nowMs: 0 };
  const now = () => clock.nowMs;
  const pauses: (number | null)[] = [];
  const sent: Sent[] = [];
  const attempts = new Map<string, ControlledAttempt>();
  const attemptAt = (subject: string) => {
    const attempt = attempts.get(subject) ?? { subject };
    attempts.set(subject, attempt);
    return attempt;
  };
  const requests = new RequestControl({
    limiter: new FairLimiter(CONCURRENCY),
    rates: new Map([
      ['player', new SendingRate(playersPerMinute, now)],
      ['captions', new SendingRate(captionsPerMinute, now)],
    ]),
    ...{ rotating, now },
    onPause: (pauseMs) => pauses.push(pauseMs),
  });
  const start = (subject: string, { kind = 'player', attempt = attemptAt(subject), ...rest }: Starting = {}) => {
    const deadlineAtMs = performance.now() + 60_000;
    const context = { signal: caller.signal, deadlineAtMs, fairnessKey: {}, ...rest };
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
    const done = requests.run({ kind, attempt, context }, send, ({ verdict }) => verdict);
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
  const exchange = async (subject: string, verdict: AddressVerdict, starting: Starting = {}) => {
    const done = start(subject, starting);
    await settle();
    await sent.at(-1)?.respond(verdict);
    return done;
  };
  const leave = (subject: string) => {
    requests.leave(attemptAt(subject));
    attempts.delete(subject);
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
    ...{ requests, clock, pauses, sent, subjects, kinds, leave },
    ...{ start, startAll, respond, respondToAll, exchange },
  };
}

describe('slow start', () => {
  it('starts four videos at a time, and doubles them in each round trip up to the limit', async () => {
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
    const { startAll, sent, clock, exchange, respondToAll } = control({ playersPerMinute: 0, captionsPerMinute: 0 });
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
    const { requests, exchange, start, clock, subjects, respond, leave } = control();
    await exchange('a', refused());
    clock.nowMs += 30_000;
    const probed = start('probe');
    const next = start('next');
    await respond(NOTHING);
    await probed;
    expect(subjects()).toEqual([]);
    leave('probe');
    expect(subjects()).toEqual(['next']);
    await respond(SERVED);
    await next;
    expect(requests.open).toBe(true);
  });

  it('of captions pauses the egress for players too, until captions are served', async () => {
    const { clock, pauses, exchange, startAll, kinds, subjects, respond } = control();
    await exchange('a', refused(60), { kind: 'captions' });
    expect(await kinds(await startAll(2))).toEqual(['blocked', 'blocked']);
    clock.nowMs += 60_000;
    void (await startAll(3, 'later'));
    await respond(SERVED);
    expect(subjects()).toEqual([]);
    await exchange('later 0', SERVED, { kind: 'captions' });
    expect(subjects()).toEqual(['later 1', 'later 2']);
    expect(pauses).toEqual([60_000, null]);
  });

  it('of players lets the captions through whose player was served', async () => {
    const { exchange } = control();
    await exchange('before', SERVED);
    await exchange('a', refused());
    await expect(exchange('before', SERVED, { kind: 'captions' })).resolves.toMatchObject({ kind: 'done' });
    await expect(exchange('after', SERVED)).resolves.toMatchObject({ kind: 'blocked' });
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

  it('is still asked about by an attempt when another one at the same video ends', async () => {
    const { requests, exchange } = control();
    const [asker, other] = [{ subject: 'a' }, { subject: 'a' }];
    await exchange('a', SERVED, { attempt: other });
    await exchange('a', DOUBTFUL, { attempt: asker });
    requests.leave(other);
    expect(requests.asking).toBe(true);
    requests.leave(asker);
    expect(requests.asking).toBe(false);
  });
});

/**
 * Attempts one after the other, by the video and what it gets: `+` served, `-` doubtful, `!` refused. A small letter asks for
 * the player, a capital one for the captions.
 */
it.each([
  ['is paused', 'two videos in a row are refused', 'a- b-'],
  ['is not paused', 'one video is refused again and again', 'a- a- a- a- a-'],
  ['is not paused', 'another video is served in between', 'a- b+ c-'],
  ['is paused', 'the captions of five videos in a row are withheld', 'A- B- C- D- D- D- f+ g+ E-'],
  ['is not paused', 'captions are served in between', 'A- B- C- D- E+ A- B- C- D-'],
  ['is not paused', 'addresses of a gateway are refused', `${'a! '.repeat(99)}b+ ${'a- '.repeat(99)}`],
  ['is paused', 'a hundred attempts in a row are refused through a gateway', 'a! '.repeat(100)],
])('an egress %s when %s', async (end, name, script) => {
  const { pauses, exchange, leave } = control({ rotating: name.includes('gateway') });
  for (const [subject = '', result] of script.trim().split(' ')) {
    const kind = subject === subject.toLowerCase() ? 'player' : 'captions';
    await exchange(subject, result === '+' ? SERVED : result === '-' ? DOUBTFUL : refused(), { kind });
    leave(subject);
  }
  expect(pauses).toEqual(end === 'is paused' ? [30_000] : []);
});

describe('the rate', () => {
  it('makes a request busy whose turn comes after its deadline, and does not send it', async () => {
    const { start, sent } = control({ playersPerMinute: 60 });
    const deadlineAtMs = performance.now() + 5_000;
    const results = Array.from({ length: 20 }, (_, index) => start(`${index}`, { deadlineAtMs }));
    await settle();
    expect(sent).toHaveLength(4);
    expect(await results.at(-1)).toMatchObject({ kind: 'busy' });
  });

  it('of captions holds back players, and not the captions that follow one; a video without captions uses none of it', async () => {
    const { exchange, startAll, sent, leave } = control({ captionsPerMinute: 10 });
    await exchange('without', SERVED);
    leave('without');
    await exchange('with', SERVED);
    void (await startAll(1));
    expect(sent).toHaveLength(0);
    await expect(exchange('with', SERVED, { kind: 'captions' })).resolves.toMatchObject({ kind: 'done' });
    leave('with');
    expect(sent).toHaveLength(0);
  });

  it('counts the calls that take turns: a small call is not busy for a large one', async () => {
    const { start, exchange } = control({ playersPerMinute: 60 });
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
