import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { newContext, newPool, nextEgress } from '../../../../test/youtube/egresses.js';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt } from './attempt.js';
import type { Doubt, Finding } from './examination.js';
import { RequestQueue } from './request-queue.js';

Logger.overrideLogger(false);

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** Lets everything run that waits for nothing else; an examination yields once before it asks. */
const settle = async () => {
  for (let turns = 0; turns < 2; turns += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** What is known of the videos at an egress, and experiments whose results the test gives. */
function examine(proxyUrl?: string) {
  const queue = new RequestQueue(16);
  const egress = nextEgress(newPool(proxyUrl === undefined ? 0 : [proxyUrl], new Registry(), undefined, queue));
  const gate = egress.gates.video;
  const examination = egress.examinations.video;
  /** Ends the experiments that were started, in order. */
  const experiments: ((finding: Finding) => Promise<void>)[] = [];
  const experiment = () =>
    new Promise<Finding>((resolve) => {
      experiments.push(async (finding) => {
        resolve(finding);
        await settle();
      });
    });
  const doubt = (choices: Partial<Doubt> = {}): Doubt => ({
    kind: 'player',
    client: null,
    sinceMs: performance.now(),
    ...choices,
  });
  const settleDoubt = (about = doubt(), context: Partial<ReadingContext> = {}) => {
    const found = examination.settle(about, newContext(context), experiment);
    found.catch(() => undefined);
    return found;
  };
  const served = (client = 'ANDROID', kind: Doubt['kind'] = 'player') =>
    examination.served(kind, client, performance.now());
  /** Sends a request of another caller. Returns its end. */
  const sendAnother = (subject = 'another', line = gate.line) => {
    let end = (): void => undefined;
    const send = () => new Promise<{ kind: 'sent' }>((resolve) => (end = () => resolve({ kind: 'sent' })));
    const state = { sent: false };
    const request = { kind: 'player', attempt: new Attempt(subject), context: newContext() };
    void queue.run(line, request, () => ((state.sent = true), send()));
    return Object.assign(state, { end: () => (end(), settle()) });
  };
  return { egress, gate, examination, experiments, doubt, settleDoubt, served, sendAnother };
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
    const list = sendAnother('a list', egress.gates.channel.line);
    const found = settleDoubt();
    await settle();
    expect([list.sent, experiments.length]).toEqual([true, 1]);
    await experiments[0]?.('unknown');
    await expect(found).resolves.toBe('unknown');
    await list.end();
  });

  it('is that of a refused address while its egress is paused, and unknown after the deadline, without a control', async () => {
    const { settleDoubt, gate, experiments } = examine();
    await expect(settleDoubt(undefined, { deadlineAtMs: performance.now() })).resolves.toBe('unknown');
    gate.pause('player', null);
    await expect(settleDoubt()).resolves.toBe('address-refused');
    expect(experiments).toHaveLength(0);
  });
});

it('a client is doubted for a kind of request until one of the kind is served', () => {
  const { examination, served } = examine();
  const doubted = () => [
    examination.isClientDoubted('player', 'VISIONOS'),
    examination.isClientDoubted('player', 'ANDROID'),
    examination.isClientDoubted('captions', 'VISIONOS'),
  ];
  examination.doubt('player', 'a', 'VISIONOS');
  expect(doubted()).toEqual([true, false, false]);
  examination.doubt('player', 'a', 'ANDROID');
  expect(doubted()).toEqual([true, true, false]);
  served('IOS');
  expect(doubted()).toEqual([false, false, false]);
});

describe('an experiment', () => {
  it.each<Finding>(['address-refused', 'unknown', 'client-refused'])(
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
    const { settleDoubt, doubt, examination, experiments } = examine();
    const early = [settleDoubt(), settleDoubt()];
    const sentAtMs = performance.now();
    jest.advanceTimersByTime(100);
    const late = settleDoubt(doubt());
    await settle();
    examination.served('player', 'ANDROID', sentAtMs);
    await experiments[0]?.('served');
    await expect(Promise.all(early)).resolves.toEqual(['served', 'served']);
    expect(experiments).toHaveLength(2);
    examination.served('player', 'ANDROID', performance.now());
    await experiments[1]?.('served');
    await expect(late).resolves.toBe('served');
  });

  it('with a client that is refused answers the doubts about this client, and those about another one ask', async () => {
    const { settleDoubt, doubt, examination, experiments } = examine();
    const [android, alike, ios] = ['ANDROID', 'ANDROID', 'IOS'].map((client) => settleDoubt(doubt({ client })));
    await settle();
    examination.clientRefused('player', 'ANDROID');
    await experiments[0]?.('client-refused');
    await expect(Promise.all([android, alike])).resolves.toEqual(['client-refused', 'client-refused']);
    expect(experiments).toHaveLength(2);
    examination.served('player', 'IOS', performance.now());
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
    const { settleDoubt, sendAnother, experiments, gate } = examine('http://{session}.invalid');
    sendAnother();
    const found = settleDoubt();
    await settle();
    await experiments[0]?.('address-refused');
    await expect(found).resolves.toBe('address-refused');
    expect([gate.paused, experiments.length]).toEqual([false, 1]);
  });
});

describe('what has not started', () => {
  it('is held back from the second doubted video in a row on until the examination is over', async () => {
    const { examination, settleDoubt, sendAnother, gate, experiments } = examine();
    expect(examination.doubt('player', 'a', 'VISIONOS')).toBe(true);
    const found = [settleDoubt()];
    expect(gate.held).toBe(false);
    expect(examination.doubt('player', 'b', 'VISIONOS')).toBe(false);
    found.push(settleDoubt());
    expect(gate.held).toBe(true);
    const other = sendAnother();
    await settle();
    expect([other.sent, experiments.length]).toEqual([false, 1]);
    await experiments[0]?.('unknown');
    await Promise.all(found);
    expect([gate.held, other.sent]).toEqual([false, true]);
  });

  it('is released by a request that is served, and not held by one video that is doubted again and again', async () => {
    const { examination, settleDoubt, sendAnother, gate, served, experiments } = examine();
    for (let times = 0; times < 3; times += 1) expect(examination.doubt('player', 'a', 'VISIONOS')).toBe(true);
    const found = settleDoubt();
    expect(gate.held).toBe(false);
    examination.doubt('player', 'b', 'VISIONOS');
    expect([gate.held, examination.isDoubted('player'), examination.isDoubted('captions')]).toEqual([
      true,
      true,
      false,
    ]);
    const other = sendAnother();
    expect(other.sent).toBe(false);
    served();
    expect([gate.held, other.sent, examination.isDoubted('player')]).toEqual([false, true, false]);
    // The experiment that runs is not waited for.
    await experiments[0]?.('served');
    await expect(found).resolves.toBe('served');
    expect(examination.doubt('player', 'c', 'VISIONOS')).toBe(true);
  });

  it('is not held back by doubts while nobody examines them, or through a gateway', () => {
    const { examination, gate } = examine();
    for (const subject of ['a', 'b']) examination.doubt('player', subject, 'VISIONOS');
    expect(gate.held).toBe(false);
    const session = examine('http://{session}.invalid');
    for (const subject of ['a', 'b']) session.examination.doubt('player', subject, 'VISIONOS');
    void session.settleDoubt();
    expect(session.gate.held).toBe(false);
  });
});
