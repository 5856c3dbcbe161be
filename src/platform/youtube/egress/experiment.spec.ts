import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { newContext, newPool, newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt } from './attempt.js';
import type { Doubt, Verdict } from './egress.js';
import { type Controls, Experiment } from './experiment.js';
import type { ControlEnd } from './egress.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { RequestQueue } from './request-queue.js';

Logger.overrideLogger(false);

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** Lets everything run that waits for nothing else; an experiment yields once before it asks. */
const settle = async () => {
  for (let turns = 0; turns < 2; turns += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** How the controls end that lead to a verdict. */
const CONTROL_ENDS: Readonly<Record<Verdict, readonly [ControlEnd, ...ControlEnd[]]>> = {
  served: ['served'],
  'client-refused': ['refused', 'served'],
  'address-refused': ['refused', 'refused'],
  unknown: ['unknown'],
};

/** What is known of the videos at an egress, and experiments whose verdicts the test gives. */
function examine(proxyUrl?: string) {
  const queue = new RequestQueue(16);
  const egress = nextEgress(newPool(proxyUrl === undefined ? 0 : [proxyUrl], { queue }));
  const use = egress.uses.video;
  const { line } = use;
  /** Ends the experiments that were started, in order. */
  const experiments: ((verdict: Verdict) => Promise<void>)[] = [];
  const further: ControlEnd[] = [];
  const controls: Controls = {
    clients: () => ['ANDROID', 'IOS'],
    ids: () => ['known', 'other'],
    ask: () => {
      const end = further.shift();
      if (end) return Promise.resolve(end);
      return new Promise((resolve) => {
        experiments.push(async (verdict) => {
          const [first, ...others] = CONTROL_ENDS[verdict];
          further.push(...others);
          resolve(first);
          await settle();
        });
      });
    },
    rest: () => undefined,
  };
  const metrics = new UpstreamMetrics(new Registry(), queue);
  const experiment = new Experiment({ video: controls, channel: controls }, metrics);
  const doubt = (choices: Partial<Doubt> = {}): Doubt => ({
    kind: 'player',
    client: null,
    sinceMs: performance.now(),
    ...choices,
  });
  const settleDoubt = (about = doubt(), context: Partial<ReadingContext> = {}) => {
    const client = about.client === 'IOS' ? 'IOS' : 'ANDROID';
    const found = experiment.settle(about, client, newScope(context, egress));
    found.catch(() => undefined);
    return found;
  };
  const served = (client = 'ANDROID', kind: Doubt['kind'] = 'player') => use.served(kind, client, performance.now());
  /** Sends a request of another caller. Returns its end. */
  const sendAnother = (subject = 'another', of = line) => {
    let end = (): void => undefined;
    const send = () => new Promise<{ kind: 'sent' }>((resolve) => (end = () => resolve({ kind: 'sent' })));
    const state = { sent: false };
    const request = { kind: 'player', attempt: new Attempt(subject), context: newContext() };
    void queue.run(of, request, () => ((state.sent = true), send()));
    return Object.assign(state, { end: () => (end(), settle()) });
  };
  return { egress, line, use, experiments, doubt, settleDoubt, served, sendAnother };
}

describe('a doubt', () => {
  it('is answered at no cost by what was served to a request that was sent later', async () => {
    const { settleDoubt, doubt, served, experiments } = examine();
    const about = doubt();
    jest.advanceTimersByTime(1);
    served();
    await expect(settleDoubt(about)).resolves.toBe('served');
    await expect(settleDoubt(doubt({ sinceMs: about.sinceMs, client: 'ANDROID' }))).resolves.toBe('served');
    expect(experiments).toHaveLength(0);
  });

  it.each<[string, Partial<Doubt>]>([
    ['sent before', { sinceMs: 2 }],
    ['of another kind', { kind: 'captions' }],
    ['of another client', { client: 'IOS' }],
  ])('is not answered by a request that was %s', async (_, about) => {
    const { settleDoubt, doubt, served, experiments } = examine();
    const sinceMs = performance.now();
    served();
    const found = settleDoubt(doubt({ sinceMs, ...about, ...(about.sinceMs && { sinceMs: sinceMs + about.sinceMs }) }));
    await settle();
    expect(experiments).toHaveLength(1);
    await experiments[0]?.('unknown');
    await expect(found).resolves.toBe('unknown');
  });

  it('is answered by the request of another caller that is in flight, before a control is asked', async () => {
    const { settleDoubt, sendAnother, served, experiments } = examine();
    const other = sendAnother();
    const found = settleDoubt();
    await settle();
    expect(experiments).toHaveLength(0);
    served();
    await expect(found).resolves.toBe('served');
    await other.end();
    expect(experiments).toHaveLength(0);
  });

  it('asks the control when the requests of the others have ended without an answer', async () => {
    const { settleDoubt, sendAnother, experiments } = examine();
    const other = sendAnother();
    const found = settleDoubt();
    await other.end();
    expect(experiments).toHaveLength(1);
    await experiments[0]?.('unknown');
    await expect(found).resolves.toBe('unknown');
  });

  it.each([
    ['30 s', 120_000, 30_000],
    ['what leaves time for a control', 20_000, 15_000],
  ])('waits for the requests of the others for at most %s', async (_, deadlineMs, waitMs) => {
    const { settleDoubt, sendAnother, experiments } = examine();
    sendAnother();
    const found = settleDoubt(undefined, { deadlineAtMs: performance.now() + deadlineMs });
    await jest.advanceTimersByTimeAsync(waitMs - 1);
    await settle();
    expect(experiments).toHaveLength(0);
    await jest.advanceTimersByTimeAsync(1);
    await settle();
    expect(experiments).toHaveLength(1);
    await experiments[0]?.('unknown');
    await expect(found).resolves.toBe('unknown');
  });

  it('is answered by what arrives in the turn in which it arises, before a control is asked', async () => {
    const { settleDoubt, served, experiments } = examine();
    const found = settleDoubt();
    await Promise.resolve();
    expect(experiments).toHaveLength(0);
    served();
    await expect(found).resolves.toBe('served');
    expect(experiments).toHaveLength(0);
  });

  it('asks the control beside requests for lists, which cannot answer it', async () => {
    const { egress, settleDoubt, sendAnother, experiments } = examine();
    const list = sendAnother('a list', egress.uses.channel.line);
    const found = settleDoubt();
    await settle();
    expect([list.sent, experiments.length]).toEqual([true, 1]);
    await experiments[0]?.('unknown');
    await expect(found).resolves.toBe('unknown');
    await list.end();
  });

  it('is that of a refused address while its egress is paused, and unknown after the deadline, without a control', async () => {
    const { settleDoubt, line, experiments } = examine();
    await expect(settleDoubt(undefined, { deadlineAtMs: performance.now() })).resolves.toBe('unknown');
    line.pause('player', null);
    await expect(settleDoubt()).resolves.toBe('address-refused');
    expect(experiments).toHaveLength(0);
  });
});

it('a client is doubted for a kind of request until one of the kind is served', () => {
  const { use, served } = examine();
  const doubted = () => [
    use.isDoubted('player', 'VISIONOS'),
    use.isDoubted('player', 'ANDROID'),
    use.isDoubted('captions', 'VISIONOS'),
  ];
  use.doubt('player', 'a', 'VISIONOS');
  expect(doubted()).toEqual([true, false, false]);
  use.doubt('player', 'a', 'ANDROID');
  expect(doubted()).toEqual([true, true, false]);
  served('IOS');
  expect(doubted()).toEqual([false, false, false]);
});

it('what is doubted takes no more memory with each video while no control can be asked', () => {
  const { use } = examine();
  const known = () => inspect(use, { depth: Infinity, maxArrayLength: null }).length;
  for (const video of ['a', 'b']) use.doubt('player', video, 'VISIONOS');
  const before = known();
  for (let video = 0; video < 1_000; video += 1) use.doubt('player', `${video}`, 'VISIONOS');
  expect(known()).toBe(before);
});

describe('an experiment', () => {
  it.each<Verdict>(['address-refused', 'unknown', 'client-refused'])(
    'that ends as %s is for all who wait',
    async (finding) => {
      const { settleDoubt, experiments } = examine();
      const found = [settleDoubt(), settleDoubt(), settleDoubt()];
      await settle();
      await experiments[0]?.(finding);
      await expect(Promise.all(found)).resolves.toEqual([finding, finding, finding]);
      expect(experiments).toHaveLength(1);
    },
  );

  it('that is served answers the doubts that arose before, and a later one asks again', async () => {
    const { settleDoubt, doubt, use, experiments } = examine();
    const early = [settleDoubt(), settleDoubt()];
    const sentAtMs = performance.now();
    jest.advanceTimersByTime(100);
    const late = settleDoubt(doubt());
    await settle();
    use.served('player', 'ANDROID', sentAtMs);
    await experiments[0]?.('served');
    await expect(Promise.all(early)).resolves.toEqual(['served', 'served']);
    expect(experiments).toHaveLength(2);
    use.served('player', 'ANDROID', performance.now());
    await experiments[1]?.('served');
    await expect(late).resolves.toBe('served');
  });

  it('with a client that is refused answers the doubts about this client, and those about another one ask', async () => {
    const { settleDoubt, doubt, use, experiments } = examine();
    const [android, alike, ios] = ['ANDROID', 'ANDROID', 'IOS'].map((client) => settleDoubt(doubt({ client })));
    await settle();
    await experiments[0]?.('client-refused');
    await expect(Promise.all([android, alike])).resolves.toEqual(['client-refused', 'client-refused']);
    expect(experiments).toHaveLength(2);
    use.served('player', 'IOS', performance.now());
    await experiments[1]?.('served');
    await expect(ios).resolves.toBe('served');
    // Known, for a doubt that arose before.
    await expect(settleDoubt(doubt({ client: 'ANDROID' }))).resolves.toBe('client-refused');
    expect(experiments).toHaveLength(2);
  });

  it('with a client whose texts are refused does not answer a doubt about its players', async () => {
    const { settleDoubt, doubt, experiments } = examine();
    const texts = settleDoubt(doubt({ kind: 'captions', client: 'ANDROID' }));
    const players = settleDoubt(doubt({ kind: 'player', client: 'ANDROID' }));
    await settle();
    await experiments[0]?.('client-refused');
    await expect(texts).resolves.toBe('client-refused');
    await experiments[1]?.('unknown');
    await expect(players).resolves.toBe('unknown');
  });

  it('goes on when one who waits is aborted, also the one that started it', async () => {
    const { settleDoubt, experiments } = examine();
    const leaving = new AbortController();
    const aborted = settleDoubt(undefined, { signal: leaving.signal });
    const stays = settleDoubt();
    await settle();
    leaving.abort(new Error('left'));
    await expect(aborted).rejects.toThrow('left');
    await experiments[0]?.('address-refused');
    await expect(stays).resolves.toBe('address-refused');
    expect(experiments).toHaveLength(1);
    await expect(settleDoubt(undefined, { signal: leaving.signal })).rejects.toThrow('left');
  });

  it('ends for an aborted one that waits for the requests of others, too', async () => {
    const { settleDoubt, sendAnother, experiments } = examine();
    sendAnother();
    const leaving = new AbortController();
    const aborted = settleDoubt(undefined, { signal: leaving.signal });
    await settle();
    leaving.abort(new Error('left'));
    await expect(aborted).rejects.toThrow('left');
    expect(experiments).toHaveLength(0);
  });

  it('through a session of a gateway is one, although neither its refusal pauses the gateway nor others are waited for', async () => {
    const { settleDoubt, sendAnother, experiments, line } = examine('http://{session}.invalid');
    sendAnother();
    const found = settleDoubt();
    await settle();
    await experiments[0]?.('address-refused');
    await expect(found).resolves.toBe('address-refused');
    expect([line.paused, experiments.length]).toEqual([false, 1]);
  });
});

describe('what has not started', () => {
  it('is held back from the second doubted video in a row on until the verdict', async () => {
    const { use, settleDoubt, sendAnother, line, experiments } = examine();
    expect(use.doubt('player', 'a', 'VISIONOS')).toBe(true);
    const found = [settleDoubt()];
    expect(line.held).toBe(false);
    expect(use.doubt('player', 'b', 'VISIONOS')).toBe(false);
    found.push(settleDoubt());
    expect(line.held).toBe(true);
    const other = sendAnother();
    await settle();
    expect([other.sent, experiments.length]).toEqual([false, 1]);
    await experiments[0]?.('unknown');
    await Promise.all(found);
    expect([line.held, other.sent]).toEqual([false, true]);
  });

  it('is released by a request that is served, and not held by one video that is doubted again and again', async () => {
    const { use, settleDoubt, sendAnother, line, served, experiments } = examine();
    for (let times = 0; times < 3; times += 1) expect(use.doubt('player', 'a', 'VISIONOS')).toBe(true);
    const found = settleDoubt();
    expect(line.held).toBe(false);
    use.doubt('player', 'b', 'VISIONOS');
    expect([line.held, use.isDoubted('player'), use.isDoubted('captions')]).toEqual([true, true, false]);
    const other = sendAnother();
    expect(other.sent).toBe(false);
    served();
    expect([line.held, other.sent, use.isDoubted('player')]).toEqual([false, true, false]);
    // The experiment that runs is not waited for.
    await experiments[0]?.('served');
    await expect(found).resolves.toBe('served');
    expect(use.doubt('player', 'c', 'VISIONOS')).toBe(true);
  });

  it('is not held back by doubts while nobody examines them, or through a gateway', () => {
    const { use, line } = examine();
    for (const subject of ['a', 'b']) use.doubt('player', subject, 'VISIONOS');
    expect(line.held).toBe(false);
    const session = examine('http://{session}.invalid');
    for (const subject of ['a', 'b']) session.use.doubt('player', subject, 'VISIONOS');
    void session.settleDoubt();
    expect(session.line.held).toBe(false);
  });
});
