import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { newContext, newExperiment, newPool, nextEgress } from '../../../../test/youtube/egresses.js';
import { recordedEvents } from '../../../../test/youtube/recorded-events.js';
import type { ReadingContext } from '../../video-platform.js';
import { Attempt, type AttemptEnd, RetryBudget } from './attempt.js';
import type { AttemptResult, EgressPool } from './egress-pool.js';
import type { ControlEnd, Egress } from './egress.js';
import type { RequestScope } from './request-pipeline.js';
import { RequestQueue } from './request-queue.js';

Logger.overrideLogger(false);

/** Lets everything run that waits for nothing else. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

function pool(proxies: number | readonly string[], experiment = newExperiment()) {
  const clock = { nowMs: 0 };
  const now = () => clock.nowMs;
  const events = recordedEvents();
  const registry = new Registry();
  const queue = new RequestQueue(64, now);
  const egresses = newPool(proxies, { registry, now, queue, experiment });
  const takeFor = (use: 'video' | 'channel', tried: string[] = []) => egresses.take(use, tried, newContext());
  const take = (tried: string[] = []) => takeFor('video', tried)?.egress ?? null;
  const names = (times: number) => Array.from({ length: times }, () => take()?.name ?? null);
  /** The egress of this name. */
  const named = (name: string): Egress => {
    const others = [1, 2, 3].map((number) => `proxy-${number}`).filter((other) => other !== name);
    const egress = name === 'direct' ? take() : take(others);
    if (egress?.name !== name) throw new Error(`There is no ${name}.`);
    return egress;
  };
  const record = async (egress: Egress, end: AttemptEnd) => {
    egresses.recordEnd(egress, 'video', end);
    await settle();
  };
  const valuesOf = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values ?? [];
  /** The series of a gauge whose value is 1. */
  const active = async (name: string) =>
    (await valuesOf(name)).filter(({ value }) => value === 1).map(({ labels }) => Object.values(labels).join(' '));
  return { egresses, queue, clock, events, take, takeFor, names, named, record, active, valuesOf };
}

/** Controls that end so in turn; the last one repeats. */
function controlsWith(...ends: ControlEnd[]) {
  return newExperiment(() => Promise.resolve((ends.length > 1 ? ends.shift() : ends[0]) ?? 'unknown'));
}

describe('the egress pool', () => {
  it('rotates through the egresses', () => {
    expect(pool(3).names(4)).toEqual(['proxy-1', 'proxy-2', 'proxy-3', 'proxy-1']);
  });

  it('has one direct egress without proxies', () => {
    expect(pool(0).names(2)).toEqual(['direct', 'direct']);
  });

  it('admits lists at the rates of the egresses that do not rest', async () => {
    const { egresses, named, record } = pool(2, controlsWith('unreached'));
    await record(named('proxy-1'), 'unreached');
    const list = named('proxy-2').uses.channel.line.rates.get('list');
    let admitted = 0;
    for (; egresses.admitsLists && admitted < 100; admitted += 1) list?.spend(null, true);
    expect(admitted).toBe(40);
  });

  it('chooses the egress that can serve first', () => {
    const { named, names } = pool(2);
    const { line } = named('proxy-1').uses.video;
    for (let index = 0; index < 20; index += 1) line.rates.get('player')?.spend(0);
    line.rates.get('player')?.decrease();
    for (let index = 0; index < 10; index += 1) line.rates.get('player')?.spend(0);
    expect(line.waitMs(false, 0)).toBeGreaterThan(0);
    expect(names(3)).toEqual(['proxy-2', 'proxy-2', 'proxy-2']);
  });

  it('chooses the egress where fewer wait', async () => {
    const { named, names, queue } = pool(2);
    const { line } = named('proxy-1').uses.video;
    line.learn(1);
    line.held = true;
    const leaving = new AbortController();
    const context = newContext({ signal: leaving.signal, deadlineAtMs: Infinity });
    const waiting = queue.run(line, { kind: 'player', attempt: new Attempt('a'), context }, () => settle());
    expect(names(2)).toEqual(['proxy-2', 'proxy-2']);
    leaving.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
  });

  it('gives a second attempt another egress, and says whether there is a further one', () => {
    const { takeFor } = pool(2);
    expect(takeFor('video')).toMatchObject({ egress: { name: 'proxy-1' }, hasAlternative: true });
    expect(takeFor('video', ['proxy-1'])).toMatchObject({ egress: { name: 'proxy-2' }, hasAlternative: false });
    expect(takeFor('video', ['proxy-1', 'proxy-2'])).toBeNull();
    expect(pool(0).takeFor('video')).toMatchObject({ hasAlternative: false });
  });

  it('exports every end of every egress from the start, and counts them', async () => {
    const { record, named, valuesOf } = pool(2);
    const counted = () => valuesOf('ct_upstream_exit_findings_total');
    expect(await counted()).toHaveLength(2 * 2 * 5);
    await record(named('proxy-1'), 'busy');
    expect((await counted()).filter(({ value }) => value > 0)).toEqual([
      { labels: { exit: 'proxy-1', use: 'video', finding: 'busy' }, value: 1 },
    ]);
  });
});

describe('an egress that is refused', () => {
  it('is skipped for the use that is refused, and null is given when all are', () => {
    const { egresses, named, names, takeFor } = pool(2);
    named('proxy-1').uses.video.line.pause('player', null);
    expect(names(2)).toEqual(['proxy-2', 'proxy-2']);
    expect([1, 2].map(() => takeFor('channel')?.egress.name).sort()).toEqual(['proxy-1', 'proxy-2']);
    expect(egresses.blockedForSeconds('video')).toBeNull();
    named('proxy-2').uses.video.line.pause('captions', 90);
    expect(names(2)).toEqual([null, null]);
    expect(egresses.blockedForSeconds('video')).toBe(30);
  });

  it('is used again after its pause only when a control was served, which is asked beside what others serve', async () => {
    const control = controlsWith('refused', 'served');
    const { clock, named, names, events } = pool(2, control);
    named('proxy-1').uses.video.line.pause('player', null);
    clock.nowMs = 29_999;
    expect(names(1)).toEqual(['proxy-2']);
    expect(control.asked).toEqual([]);
    clock.nowMs = 30_000;
    // One control, however many ask.
    expect(names(3)).toEqual(['proxy-2', 'proxy-2', 'proxy-2']);
    await settle();
    expect(control.asked).toEqual(['proxy-1 player']);
    clock.nowMs = 30_000 + 59_999;
    expect(names(1)).toEqual(['proxy-2']);
    clock.nowMs += 1;
    expect(names(1)).toEqual(['proxy-2']);
    await settle();
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
    expect(events.map(({ event, openForSeconds, end }) => [event, openForSeconds ?? end])).toEqual([
      ['youtube_block_opened', 30],
      ['youtube_control_asked', 'refused'],
      ['youtube_block_opened', 60],
      ['youtube_control_asked', 'served'],
      ['youtube_block_closed', undefined],
      ['youtube_pace_learned', undefined],
    ]);
  });

  it.each<ControlEnd>(['unreached', 'unknown', 'refused'])('stays refused when its control is %s', async (end) => {
    const { clock, named, take } = pool(0, newExperiment(end));
    const { line } = named('direct').uses.video;
    line.pause('player', null);
    clock.nowMs = 30_000;
    take();
    await settle();
    expect([line.paused, line.pauseRemainingMs]).toEqual([true, 60_000]);
    expect(take()).toBeNull();
  });

  it('is given to wait for its control when there is nothing else, and holds back what starts until then', async () => {
    let serve: (end: ControlEnd) => void = () => undefined;
    const control = newExperiment(() => new Promise((resolve) => (serve = resolve)));
    const { clock, named, take, queue } = pool(0, control);
    const { line } = named('direct').uses.video;
    line.pause('player', null);
    clock.nowMs = 30_000;
    const egress = take();
    expect(egress?.name).toBe('direct');
    let isSent = false;
    const context = newContext({ deadlineAtMs: Infinity });
    const done = queue.run(line, { kind: 'player', attempt: new Attempt('a'), context }, () => {
      isSent = true;
      return Promise.resolve({ kind: 'sent' });
    });
    expect(isSent).toBe(false);
    serve('served');
    await expect(done).resolves.toEqual({ kind: 'sent' });
  });

  it('is exported, with the seconds of its pause and its pace', async () => {
    const { clock, named, active, valuesOf } = pool(2);
    const { channel, video } = named('proxy-1').uses;
    for (let index = 0; index < 20; index += 1) video.line.rates.get('captions')?.spend(0);
    channel.line.pause('list', null);
    video.line.pause('captions', null);
    expect(await active('ct_upstream_breaker_open')).toEqual(['proxy-1 channel', 'proxy-1 video']);
    clock.nowMs = 40_000;
    // Until a control is served.
    expect(await active('ct_upstream_breaker_open')).toEqual(['proxy-1 channel', 'proxy-1 video']);
    expect((await valuesOf('ct_upstream_pause_seconds')).map(({ value }) => value)).toEqual([0, 0, 0, 0]);
    expect(await valuesOf('ct_upstream_pace_per_minute')).toEqual([
      { labels: { exit: 'proxy-1', kind: 'captions' }, value: 12 },
    ]);
  });
});

describe('an egress that was not reached', () => {
  it('rests when a control does not reach it either, and comes back by a control', async () => {
    const control = controlsWith('unreached', 'unreached', 'refused');
    const { clock, named, names, record, events, active } = pool(2, control);
    await record(named('proxy-1'), 'unreached');
    expect(control.asked).toEqual(['proxy-1 player']);
    expect(names(3)).toEqual(['proxy-2', 'proxy-2', 'proxy-2']);
    expect(await active('ct_upstream_exit_resting')).toEqual(['proxy-1']);
    // Asked again after a minute, not before, and it does not come back by time alone.
    clock.nowMs = 59_999;
    names(1);
    await settle();
    expect(control.asked).toHaveLength(1);
    clock.nowMs = 60_000;
    expect(names(2)).toEqual(['proxy-2', 'proxy-2']);
    await settle();
    expect(control.asked).toHaveLength(2);
    expect(names(2)).toEqual(['proxy-2', 'proxy-2']);
    clock.nowMs = 120_000;
    names(1);
    await settle();
    // A refusal is a response of the platform.
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
    expect(await active('ct_upstream_exit_resting')).toEqual([]);
    expect(events.map(({ event, exit }) => [event, exit])).toEqual([
      ['youtube_exit_rested', 'proxy-1'],
      ['youtube_exit_rested', 'proxy-1'],
      ['youtube_exit_back', 'proxy-1'],
    ]);
    expect(JSON.stringify(events)).not.toContain('secret');
  });

  it.each<ControlEnd>(['served', 'refused', 'unknown'])('stays in use when the control is %s', async (end) => {
    const { named, names, record, events } = pool(2, newExperiment(end));
    await record(named('proxy-1'), 'unreached');
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
    expect(events).toEqual([]);
  });

  it('comes last while the control is asked', async () => {
    let answer: (end: ControlEnd) => void = () => undefined;
    const control = newExperiment(() => new Promise((resolve) => (answer = resolve)));
    const { named, names, record } = pool(2, control);
    await record(named('proxy-1'), 'unreached');
    expect(names(2)).toEqual(['proxy-2', 'proxy-2']);
    answer('served');
    await settle();
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
  });

  it('is better than none, but not for a second attempt', async () => {
    const { take, named, record } = pool(2, newExperiment('unreached'));
    const [first, second] = [named('proxy-1'), named('proxy-2')];
    await record(first, 'unreached');
    await record(second, 'unreached');
    expect(take(['proxy-1'])).toBeNull();
    expect(take()).not.toBeNull();
  });

  it('is not checked when it is the only one', async () => {
    const control = newExperiment('unreached');
    const { take, named, record } = pool(1, control);
    const only = named('proxy-1');
    await record(only, 'unreached');
    expect([take(), control.asked]).toEqual([only, []]);
  });
});

describe('a gateway', () => {
  const GATEWAY = ['http://user-{session}:secret@gateway.invalid:1'];

  it('opens a session for each attempt, and can always be tried again', async () => {
    const { takeFor, egresses } = pool(GATEWAY);
    const [one, other] = [takeFor('video'), takeFor('video', ['proxy-1'])];
    expect([one, other]).toMatchObject([
      { egress: { name: 'proxy-1' }, hasAlternative: true },
      { egress: { name: 'proxy-1' }, hasAlternative: true },
    ]);
    expect(one?.egress.dispatcher).not.toBe(other?.egress.dispatcher);
    // The line is the gateway's, and what is known is the session's.
    expect(one?.egress.uses.video.line).toBe(other?.egress.uses.video.line);
    expect(one?.egress.uses.video).not.toBe(other?.egress.uses.video);
    expect(one?.egress.gateway).toBe(other?.egress.gateway);
    await egresses.close();
  });

  it('is paused when a hundred sessions in a row are refused, and not when one is served in between', async () => {
    const { named, record, events, take, egresses } = pool(GATEWAY);
    const session = named('proxy-1');
    for (let times = 0; times < 99; times += 1) await record(session, 'refused');
    await record(session, 'answered');
    for (let times = 0; times < 99; times += 1) await record(session, 'refused');
    await record(session, 'busy');
    expect([session.uses.video.line.paused, events]).toEqual([false, []]);
    await record(session, 'refused');
    expect([session.uses.video.line.paused, take()]).toEqual([true, null]);
    expect(JSON.stringify(events)).not.toContain('secret');
    await egresses.close();
  });

  it('keeps a session open until work has ended that outlives its attempt', async () => {
    const { takeFor } = pool(GATEWAY);
    const taken = takeFor('video');
    const isClosed = () => Reflect.get(taken?.egress.dispatcher ?? {}, 'destroyed') as unknown;
    let end = (): void => undefined;
    taken?.egress.keepOpen(new Promise<void>((resolve) => (end = resolve)));
    taken?.release();
    await settle();
    expect(isClosed()).toBe(false);
    end();
    await settle();
    expect(isClosed()).toBe(true);
  });
});

/** Reads a video with these attempts. */
function read<T>(
  egresses: EgressPool,
  attempt: (scope: RequestScope) => Promise<AttemptResult<T>>,
  context: ReadingContext = newContext(),
  retries: number | RetryBudget = 0,
) {
  return egresses.read({
    use: 'video',
    subject: 'a video',
    context,
    retries,
    attempt,
  });
}

/** Runs attempts that end so, by the number of the egress; returns the path and the result. */
async function attempts(
  ends: readonly AttemptEnd[],
  egresses = newPool(ends.length, { experiment: newExperiment('unreached') }),
) {
  const path: string[] = [];
  const result = await read(egresses, ({ egress }) => {
    path.push(egress.name);
    const end = ends[Number(egress.name.replace('proxy-', '')) - 1] ?? 'answered';
    return Promise.resolve({ result: `${end} by ${egress.name}`, end });
  });
  return { path, result };
}

describe('reading through the egresses', () => {
  it('ends when one has answered', async () => {
    expect(await attempts(['answered', 'answered'])).toEqual({ path: ['proxy-1'], result: 'answered by proxy-1' });
  });

  it.each<AttemptEnd>(['refused', 'unreached', 'restricted'])(
    'goes on through the next egress when one is %s',
    async (end) => {
      expect(await attempts([end, 'answered'])).toEqual({
        path: ['proxy-1', 'proxy-2'],
        result: 'answered by proxy-2',
      });
    },
  );

  it('skips an egress that was not reached by the next reading', async () => {
    const egresses = newPool(2, { experiment: newExperiment('unreached') });
    for (const path of [['proxy-1', 'proxy-2'], ['proxy-2']])
      expect(await attempts(['unreached', 'answered'], egresses)).toEqual({ path, result: 'answered by proxy-2' });
  });

  it('ends when the egress that can serve first is busy', async () => {
    expect(await attempts(['busy', 'answered'])).toEqual({ path: ['proxy-1'], result: 'busy by proxy-1' });
  });

  it.each<[AttemptEnd[], string]>([
    [['refused', 'unreached'], 'refused by proxy-1'],
    [['unreached', 'refused'], 'refused by proxy-2'],
    [['refused', 'busy'], 'busy by proxy-2'],
    [['unreached', 'unreached'], 'unreached by proxy-1'],
    [['restricted', 'unreached'], 'unreached by proxy-2'],
    [['restricted', 'restricted'], 'restricted by proxy-2'],
  ])('reports of %j what another attempt can cure soonest: %s', async (ends, result) => {
    expect((await attempts(ends)).result).toBe(result);
  });

  it('tries at most three egresses, and eight sessions of a gateway', async () => {
    expect((await attempts(['refused', 'refused', 'refused', 'answered'])).path).toEqual([
      'proxy-1',
      'proxy-2',
      'proxy-3',
    ]);
    const gateway = newPool(['http://user-{session}:secret@gateway.invalid:1']);
    const seen: number[] = [];
    await read(gateway, ({ attempts: number }) => {
      seen.push(number);
      return Promise.resolve({ result: null, end: 'refused' });
    });
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await gateway.close();
  });

  it('tries every country, up to eight, and reports none while an egress is refused that may be in another', async () => {
    const restricted = (count: number) => Array.from({ length: count }, (): AttemptEnd => 'restricted');
    expect((await attempts([...restricted(5), 'answered'])).result).toBe('answered by proxy-6');
    expect((await attempts(restricted(9))).path).toHaveLength(8);
    const egresses = newPool(2, { experiment: newExperiment('refused') });
    await read(egresses, ({ egress }) => {
      if (egress.name === 'proxy-2') egress.uses.video.line.pause('player', null);
      return Promise.resolve({ result: null, end: egress.name === 'proxy-2' ? 'answered' : 'refused' });
    });
    expect(await attempts(['restricted', 'restricted'], egresses)).toEqual({ path: ['proxy-1'], result: null });
  });

  it('attempts nothing when every egress is paused', async () => {
    const egresses = newPool(2);
    await read(egresses, ({ egress }) => {
      egress.uses.video.line.pause('player', null);
      return Promise.resolve({ result: null, end: 'refused' });
    });
    expect(await attempts(['answered', 'answered'], egresses)).toEqual({ path: [], result: null });
  });

  it('never sends what a caller wants to find out whether a pause has ended', async () => {
    const clock = { nowMs: 0 };
    const egresses = newPool(0, { now: () => clock.nowMs, experiment: newExperiment('unreached') });
    const pause = ({ egress }: RequestScope) => {
      egress.uses.video.line.pause('player', null);
      return Promise.resolve({ result: null, end: 'refused' as const });
    };
    await read(egresses, pause);
    clock.nowMs = 30_000;
    let startWaitMs = 0;
    await read(egresses, ({ egress }) => {
      startWaitMs = egress.uses.video.line.startWaitMs(false);
      return Promise.resolve({ result: null, end: 'answered' });
    });
    expect(startWaitMs).toBe(Infinity);
  });

  it('gives each attempt retries of its own, or the budget that all share', async () => {
    const counts: boolean[] = [];
    const attempt = ({ budget }: RequestScope) => {
      counts.push(budget.take());
      return Promise.resolve({ result: null, end: 'refused' as const });
    };
    await read(newPool(2), attempt, newContext(), 1);
    await read(newPool(2), attempt, newContext(), new RetryBudget(1));
    expect(counts).toEqual([true, true, true, false]);
  });

  it('frees what an attempt holds when it ends, also by an exception', async () => {
    const egresses = newPool(1);
    const { line } = nextEgress(egresses).uses.video;
    const captions = line.rates.get('captions');
    for (let times = 0; times < 20; times += 1) captions?.spend(0);
    captions?.decrease();
    // Two may be sent at once.
    const isFree = () => captions?.waitMs(false, 1) === 0;
    expect(isFree()).toBe(true);
    const failing = read(egresses, ({ attempt, context }) => {
      line.begin({ kind: 'player', attempt, context });
      expect(isFree()).toBe(false);
      return Promise.reject(new Error('bug'));
    });
    await expect(failing).rejects.toThrow('bug');
    expect(isFree()).toBe(true);
  });

  it('ends before the next attempt when its caller is aborted', async () => {
    const leaving = new AbortController();
    const path: string[] = [];
    const aborted = read(
      newPool(2),
      ({ egress }) => {
        path.push(egress.name);
        leaving.abort(new Error('left'));
        return Promise.resolve({ result: null, end: 'refused' });
      },
      newContext({ signal: leaving.signal }),
    );
    await expect(aborted).rejects.toThrow('left');
    expect(path).toEqual(['proxy-1']);
  });
});
