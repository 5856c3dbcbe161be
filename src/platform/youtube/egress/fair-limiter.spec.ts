import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { FairLimiter } from './fair-limiter.js';

const NEVER = new AbortController().signal;

/** A task that the test ends by hand. */
function pending() {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((onResolve, onReject) => ([resolve, reject] = [onResolve, onReject]));
  return { task: () => promise, resolve, reject };
}

const turns = async () => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

/** A limiter whose slots are taken by held tasks of these callers, and the order in which further tasks ran. */
function limited(...holders: { fairnessKey?: object; background?: boolean }[]) {
  const limiter = new FairLimiter(holders.length);
  const order: string[] = [];
  const held = holders.map((holder) => ({ holder, ...pending() }));
  const done: Promise<unknown>[] = held.map(({ holder, task }) =>
    limiter.run({ fairnessKey: {}, signal: NEVER, ...holder }, task),
  );
  const queue = (name: string, context: object = {}, waitMs?: () => number) => {
    const task = () => Promise.resolve(void order.push(name));
    done.push(limiter.run({ fairnessKey: {}, signal: NEVER, ...context }, task, waitMs));
  };
  const end = async () => {
    held.forEach(({ resolve }) => resolve());
    await Promise.all(done);
  };
  return { limiter, order, held, queue, end };
}

describe('FairLimiter', () => {
  it('alternates between keys and preserves the order within one', async () => {
    const [large, small] = [{ fairnessKey: {} }, { fairnessKey: {} }];
    const { order, queue, end } = limited(large);
    for (const index of [1, 2, 3]) queue(`large ${index}`, large);
    for (const index of [1, 2]) queue(`small ${index}`, small);
    await end();
    expect(order).toEqual(['large 1', 'small 1', 'large 2', 'small 2', 'large 3']);
  });

  it('gives the next free slot to a key without running tasks first', async () => {
    const [one, other] = [{ fairnessKey: {} }, { fairnessKey: {} }];
    const { order, held, queue, end } = limited(one, one, other, other);
    queue('one', one);
    queue('other', other);
    queue('small');
    held[0]?.resolve();
    await turns();
    expect(order[0]).toBe('small');
    await end();
    expect(order).toHaveLength(3);
  });

  it('an aborted waiting task rejects with the reason, and does not run', async () => {
    const { limiter, order, queue, end } = limited({});
    const canceled = new AbortController();
    const context = { fairnessKey: {}, signal: canceled.signal };
    const run = () => limiter.run(context, () => Promise.resolve(void order.push('canceled')));
    const abandoned = run();
    queue('next');
    canceled.abort(new Error('canceled'));
    await expect(abandoned).rejects.toThrow('canceled');
    await expect(run()).rejects.toThrow('canceled');
    await end();
    expect([order, limiter.queued]).toEqual([['next'], 0]);
  });

  it('starts background tasks when no other task waits, whichever came first', async () => {
    const { order, held, queue, end } = limited({ background: true });
    queue('job', { background: true });
    queue('other job', { background: true });
    queue('call');
    held[0]?.resolve();
    await turns();
    queue('late call');
    await end();
    expect(order).toEqual(['call', 'job', 'other job', 'late call']);
  });

  it('starts a waiting background task for which a call waits too as a task of the call', async () => {
    const { limiter, order, end } = limited({ background: true }, { background: true });
    const shared = { fairnessKey: {}, signal: NEVER, background: true };
    const run = limiter.run(shared, () => Promise.resolve(void order.push('shared')));
    shared.background = false;
    limiter.startNext();
    await run;
    expect(order).toEqual(['shared']);
    await end();
  });

  it('a task that may not start yet lets others go first, and starts when it may', async () => {
    const { limiter, order, queue, end } = limited({});
    let waitMs = Infinity;
    queue('held', {}, () => waitMs);
    queue('timed', {}, () => (order.length > 0 ? 0 : 1));
    queue('other');
    const ended = end();
    await turns();
    expect(order).toEqual(['other', 'timed']);
    waitMs = 0;
    limiter.startNext();
    await ended;
    expect(order).toEqual(['other', 'timed', 'held']);
  });

  it('never exceeds the limit, starves no key and ends empty, for any sequence of events', async () => {
    const step = fc.record({ do: fc.constantFrom('run', 'run', 'end', 'fail', 'cancel'), which: fc.nat(40) });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), async (max, steps) => {
        const limiter = new FairLimiter(max);
        // Two calls and two jobs.
        const callers = [false, false, true, true].map((background) => ({ fairnessKey: {}, background }));
        const tasks: { end: ReturnType<typeof pending>; abort: AbortController; state: string; background: boolean }[] =
          [];
        const count = (state: string, background: boolean) =>
          tasks.filter((task) => task.state === state && task.background === background).length;
        const backgroundMax = Math.max(1, Math.floor(max * 0.75));
        const done: Promise<unknown>[] = [];
        for (const { do: what, which } of steps) {
          const caller = callers[which % 4];
          const task = tasks[which % Math.max(1, tasks.length)];
          if (what === 'run' && caller) {
            const added = {
              end: pending(),
              abort: new AbortController(),
              state: 'waits',
              background: caller.background,
            };
            tasks.push(added);
            const run = async () => {
              added.state = 'runs';
              await added.end.task();
            };
            const ended = limiter.run({ ...caller, signal: added.abort.signal }, run);
            done.push(ended.catch(() => null).finally(() => (added.state = 'ended')));
          } else if (what === 'end') task?.end.resolve();
          else if (what === 'fail') task?.end.reject(new Error('failed'));
          else if (task?.state === 'waits') task.abort.abort(new Error('canceled'));
          task?.end.task().catch(() => null);
          await turns();
          const running = count('runs', false) + count('runs', true);
          expect(running).toBeLessThanOrEqual(max);
          expect(count('runs', true)).toBeLessThanOrEqual(backgroundMax);
          // Nobody waits while there is room.
          if (count('waits', false) > 0) expect(running).toBe(max);
          else if (count('waits', true) > 0)
            expect(running === max || count('runs', true) === backgroundMax).toBe(true);
        }
        for (const { end } of tasks) end.resolve();
        await Promise.all(done);
        expect([limiter.running, limiter.queued]).toEqual([0, 0]);
      }),
    );
  });
});
