import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { newContext } from '../../../../test/youtube/egresses.js';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt } from './attempt.js';
import { type BudgetKind, Line } from './line.js';
import { RequestQueue } from './request-queue.js';
import { SendingRate } from './sending-rate.js';

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

const SLOTS = 16;
const now = () => performance.now();

/** Lets everything run that waits for nothing else. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

interface Choices {
  playersPerMinute?: number;
  captionsPerMinute?: number;
  startsSlowly?: boolean;
}

interface Asking extends Partial<ReadingContext> {
  kind?: string;
  attempt?: Attempt;
}

/** The line of the videos of an egress, and its requests, whose responses the test gives. */
function newLine({ playersPerMinute, captionsPerMinute, startsSlowly = true }: Choices = {}) {
  const queue = new RequestQueue(SLOTS);
  const rates = new Map<BudgetKind, SendingRate>([
    ['player', new SendingRate({ ceilingPerMinute: playersPerMinute }, now)],
    ['captions', new SendingRate({ ceilingPerMinute: captionsPerMinute }, now)],
  ]);
  const pauses: [BudgetKind, number | null][] = [];
  const line = queue.open(
    new Line({ max: SLOTS, running: 0 }, rates, {
      startsSlowly,
      now,
      onChange: () => queue.startNext(),
      onPause: (kind, pauseMs) => pauses.push([kind, pauseMs]),
    }),
  );
  /** The requests in flight. */
  const sent: { kind: string; attempt: Attempt; respond: () => Promise<void> }[] = [];
  const ask = (subject: string, { kind = 'player', attempt = new Attempt(subject), ...caller }: Asking = {}) =>
    queue.run(line, { kind, attempt, context: newContext(caller) }, () => {
      return new Promise<{ kind: 'sent' }>((resolve) => {
        const respond = async () => {
          sent.splice(sent.indexOf(request), 1);
          resolve({ kind: 'sent' });
          await settle();
        };
        const request = { kind, attempt, respond };
        sent.push(request);
      });
    });
  /** Serves a request. */
  const serve = async (request = sent[0]) => {
    if (!request) throw new Error('Nothing was sent.');
    line.answered(request.kind === 'captions' ? 'captions' : 'player');
    await request.respond();
  };
  /** Asks and serves the player of a video, and its captions unless it has none. */
  const serveVideo = async (subject: string, hasCaptions = true) => {
    const attempt = new Attempt(subject);
    for (const kind of hasCaptions ? ['player', 'captions'] : ['player']) {
      const done = ask(subject, { kind, attempt });
      await serve(sent.at(-1));
      await done;
    }
    line.leave(attempt);
  };
  const askAll = (count: number, name = 'video') =>
    Array.from({ length: count }, (_, index) => ask(`${name} ${index}`));
  return { line, pauses, sent, ask, askAll, serve, serveVideo };
}

describe('slow start', () => {
  it('starts four videos at a time, and doubles them in each round trip up to the slots of the egress', async () => {
    const { askAll, sent, serve } = newLine();
    const results = askAll(100);
    const rounds: number[] = [];
    while (sent.length > 0) {
      rounds.push(sent.length);
      for (const request of [...sent]) await serve(request);
    }
    // A response lets the next one and one more start, which are served in the next round.
    expect(rounds.slice(0, 4)).toEqual([4, 8, 16, 16]);
    expect(await Promise.all(results)).toHaveLength(100);
  });

  it('starts again after a pause', async () => {
    const { line, askAll, sent, serve, serveVideo } = newLine();
    for (let index = 0; index < 20; index += 1) await serveVideo(`${index}`);
    void askAll(20);
    expect(sent).toHaveLength(16);
    for (const request of [...sent]) await serve(request);
    line.pause('player', null);
    jest.advanceTimersByTime(30_000);
    line.resume();
    void askAll(20, 'later');
    expect(sent).toHaveLength(4);
  });

  it('counts what starts: the captions of videos that have started are sent beside it', () => {
    const { ask, askAll, sent } = newLine();
    const started = new Attempt('a');
    started.started = true;
    void askAll(5);
    void ask('a', { kind: 'captions', attempt: started });
    expect(sent.map(({ kind }) => kind)).toEqual(['player', 'player', 'player', 'player', 'captions']);
  });

  it('is not that of a gateway, whose addresses are new ones', () => {
    const { askAll, sent } = newLine({ startsSlowly: false });
    void askAll(20);
    expect(sent).toHaveLength(16);
  });
});

describe('a pause', () => {
  it('refuses at once what waits and what comes, with the seconds that remain', async () => {
    const { line, ask, askAll, sent } = newLine();
    const results = askAll(50);
    line.pause('player', null);
    const shut = (retryAfterSeconds: number) => ({ kind: 'blocked', reason: 'exit-shut', retryAfterSeconds });
    expect(await Promise.all(results.slice(4))).toEqual(Array(46).fill(shut(30)));
    jest.advanceTimersByTime(10_500);
    await expect(ask('later')).resolves.toEqual(shut(20));
    expect([sent.length, line.waiting]).toEqual([4, 0]);
  });

  it('lets through the captions of which the player was served while players are refused', async () => {
    const { line, ask, serve, sent } = newLine();
    const [served, other] = [new Attempt('served'), new Attempt('other')];
    for (const attempt of [served, other]) {
      void ask(attempt.subject, { attempt });
      await serve();
    }
    line.pause('player', null);
    void ask('served', { kind: 'captions', attempt: served });
    expect(sent.map(({ kind }) => kind)).toEqual(['captions']);
    await expect(ask('other', { attempt: other })).resolves.toMatchObject({ reason: 'exit-shut' });
    jest.advanceTimersByTime(30_000);
    line.resume();
    line.pause('captions', null);
    await expect(ask('other', { kind: 'captions', attempt: other })).resolves.toMatchObject({ reason: 'exit-shut' });
  });

  it('holds back what starts until a control was served, also when its time is over', () => {
    const { line, ask, sent, pauses } = newLine();
    line.pause('captions', null);
    jest.advanceTimersByTime(30_000);
    expect([line.paused, line.isDue, line.pauseRemainingMs, line.refusedKind]).toEqual([true, true, 0, 'captions']);
    void ask('a');
    expect(sent).toHaveLength(0);
    line.resume();
    expect([line.paused, line.isDue, line.refusedKind, sent.length]).toEqual([false, false, null, 1]);
    expect(pauses).toEqual([
      ['captions', 30_000],
      ['captions', null],
    ]);
  });

  it('never holds back a control', () => {
    const { line, ask, askAll, sent } = newLine({ playersPerMinute: 1, captionsPerMinute: 1 });
    void askAll(5);
    line.pause('player', null);
    line.held = true;
    for (const kind of ['player', 'captions']) void ask('control', { kind, attempt: new Attempt('c', 'control') });
    expect(sent.filter(({ attempt }) => attempt.role === 'control')).toHaveLength(2);
  });

  it('is prolonged by twice as much with each refused control, by at most an hour', () => {
    const { line, pauses } = newLine();
    for (let times = 0; times < 10; times += 1) {
      line.pause('player', null);
      jest.advanceTimersByTime(line.pauseRemainingMs);
    }
    const seconds = pauses.map(([, pauseMs]) => (pauseMs ?? 0) / 1_000);
    expect(seconds).toEqual([30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]);
  });

  it('is first as long as the last block of its kind, which counts for half after six hours, then prolonged by 30 s', () => {
    const { line, pauses } = newLine();
    /** A block that lasts until these controls were refused and one is served. Returns the seconds of its pauses. */
    const block = (kind: BudgetKind, refusedControls: number) => {
      pauses.length = 0;
      for (let times = 0; times <= refusedControls; times += 1) {
        line.pause(kind, null);
        jest.advanceTimersByTime(line.pauseRemainingMs);
      }
      line.resume();
      return pauses.flatMap(([, pauseMs]) => (pauseMs === null ? [] : [pauseMs / 1_000]));
    };
    expect(block('player', 1)).toEqual([30, 60]);
    expect(block('player', 2)).toEqual([90, 30, 60]);
    jest.advanceTimersByTime(6 * 3_600_000);
    expect(block('captions', 0)).toEqual([30]);
    jest.advanceTimersByTime(6 * 3_600_000 - 30_000);
    expect(block('player', 0)).toEqual([45]);
    jest.advanceTimersByTime(6 * 3_600_000);
    expect(block('player', 1)).toEqual([30, 60]);
  });

  it('is as long as the platform says, and not prolonged by the other refusals of the same block', () => {
    const { line, pauses } = newLine();
    line.pause('player', 600);
    jest.advanceTimersByTime(1_000);
    line.pause('player', null);
    line.pause('captions', 3_600);
    expect([line.pauseRemainingMs, pauses]).toEqual([599_000, [['player', 600_000]]]);
  });

  it('limits nothing after light use, in which nothing waited', async () => {
    const { line, askAll, sent, serveVideo } = newLine();
    for (let index = 0; index < 200; index += 1) {
      await serveVideo(`${index}`);
      jest.advanceTimersByTime(2_500);
    }
    line.pause('captions', null);
    jest.advanceTimersByTime(30_000);
    line.resume();
    expect([...line.rates.values()].map(({ perMinute }) => perMinute)).toEqual([null, null]);
    void askAll(20);
    expect(sent).toHaveLength(4);
  });

  it('limits the rate of the refused kind only', async () => {
    const { line, askAll, sent, serve } = newLine();
    void askAll(20);
    while (sent.length > 0) {
      jest.advanceTimersByTime(100);
      await serve();
    }
    line.pause('captions', null);
    expect([...line.rates].map(([kind, { perMinute }]) => [kind, perMinute])).toEqual([
      ['player', null],
      ['captions', 12],
    ]);
  });
});

describe('the rates', () => {
  it('make a video busy whose turn comes after its deadline, and it is not sent', async () => {
    const { ask, sent } = newLine({ playersPerMinute: 60, startsSlowly: false });
    const deadlineAtMs = performance.now() + 5_500;
    const results = Array.from({ length: 20 }, (_, index) => ask(`${index}`, { deadlineAtMs }));
    // Six at once, and one a second for five seconds.
    expect(sent).toHaveLength(6);
    expect(await Promise.all(results.slice(11))).toEqual(Array(9).fill({ kind: 'busy', retryAfterSeconds: 6 }));
  });

  it('count the captions of a video when it starts, and free them when it has none', async () => {
    const { line, ask, sent, serve, serveVideo } = newLine({ captionsPerMinute: 10 });
    await serveVideo('without', false);
    const attempt = new Attempt('with');
    void ask('with', { attempt });
    await serve();
    void ask('next');
    expect([sent.length, line.waiting]).toEqual([0, 1]);
    void ask('with', { kind: 'captions', attempt });
    expect(sent.map(({ kind }) => kind)).toEqual(['captions']);
    await serve();
    line.leave(attempt);
    expect(sent).toHaveLength(0);
    await jest.advanceTimersByTimeAsync(6_000);
    expect(sent.map(({ kind }) => kind)).toEqual(['player']);
  });

  it('count a second request of a kind, too', async () => {
    const { line, ask, serve } = newLine({ playersPerMinute: 60 });
    const attempt = new Attempt('a');
    for (let times = 0; times < 6; times += 1) {
      void ask('a', { attempt });
      await serve();
    }
    expect(line.paceMs(false, 0)).toBe(1_000);
    line.leave(attempt);
    expect(line.paceMs(false, 0)).toBe(1_000);
  });
});

describe('an experiment', () => {
  it('holds back what has not started until it is over', async () => {
    const { line, ask, sent, serve } = newLine();
    const started = new Attempt('started');
    void ask('started', { attempt: started });
    await serve();
    line.held = true;
    void ask('new');
    void ask('started', { kind: 'captions', attempt: started });
    expect(sent.map(({ attempt }) => attempt.subject)).toEqual(['started']);
    line.held = false;
    expect(sent.map(({ attempt }) => attempt.subject)).toEqual(['started', 'new']);
  });
});

describe('lists, where the platform allows 60 a minute', () => {
  it('are refused to no call once background work was, however much is due', async () => {
    const queue = new RequestQueue(SLOTS);
    const rates = new Map<BudgetKind, SendingRate>([['list', new SendingRate({ background: 'apart' }, now)]]);
    const slots = { max: SLOTS, running: 0 };
    const hooks = { onChange: () => queue.startNext(), onPause: () => undefined };
    const line = queue.open(new Line(slots, rates, { now, startsSlowly: true, ...hooks }));
    let allowed = 60;
    const counts = { background: 0, calls: 0, blocks: 0, refusedCalls: 0 };
    const list = async (background: boolean) => {
      const attempt = new Attempt('a channel');
      const response = await queue.run(
        line,
        { kind: 'list', attempt, context: newContext({ background }) },
        async () => {
          await new Promise((resolve) => setTimeout(resolve, 50));
          allowed -= 1;
          return { kind: allowed >= 0 ? ('ok' as const) : ('refused' as const) };
        },
      );
      if (response.kind === 'ok') line.answered('list');
      if (response.kind === 'refused') line.pause('list', null);
      if (response.kind === 'refused') counts.blocks += 1;
      line.leave(attempt);
      if (background) counts.background += 1;
      else counts[response.kind === 'ok' ? 'calls' : 'refusedCalls'] += 1;
      return response.kind;
    };
    let isOver = false;
    const loop = async () => {
      while (!isOver) if ((await list(true)) !== 'ok') await new Promise((resolve) => setTimeout(resolve, 1_000));
    };
    for (let loops = 0; loops < 4; loops += 1) void loop();
    const minute = async (withCalls: boolean) => {
      for (let second = 0; second < 60; second += 1) {
        allowed = Math.min(60, Math.max(0, allowed) + 1);
        if (withCalls && second % 13 === 0) for (let lists = 0; lists < 4; lists += 1) void list(false);
        await jest.advanceTimersByTimeAsync(1_000);
        if (line.isDue) line.resume();
      }
    };
    await minute(false);
    expect(counts.blocks).toBeGreaterThan(0);
    counts.blocks = counts.background = 0;
    for (let minutes = 0; minutes < 30; minutes += 1) await minute(true);
    isOver = true;
    expect(counts).toMatchObject({ blocks: 0, refusedCalls: 0, calls: 30 * 5 * 4 });
    expect(counts.background / 30).toBeGreaterThan(20);
    await jest.advanceTimersByTimeAsync(60_000);
  });
});

it('an attempt that has ended shows how long one takes, and a control does not', async () => {
  const { line, ask, sent } = newLine();
  const end = async (attempt: Attempt, ms: number) => {
    void ask(attempt.subject, { attempt });
    jest.advanceTimersByTime(ms);
    await sent[0]?.respond();
    line.leave(attempt);
  };
  // As many as make the time count in full.
  for (let count = 0; count < 32; count += 1) await end(new Attempt(`${count}`), 2_000);
  expect(line.slotSeconds).toBe(2);
  await end(new Attempt('c', 'control'), 9_000);
  expect(line.slotSeconds).toBe(2);
});
