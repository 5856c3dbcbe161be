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

describe('FairLimiter', () => {
  it('alternates between keys and preserves the order within one', async () => {
    const limiter = new FairLimiter(1);
    const [large, small] = [{}, {}];
    const order: string[] = [];
    const first = pending();
    const run = (fairnessKey: object, name: string) =>
      limiter.run({ fairnessKey, signal: NEVER }, () => Promise.resolve(void order.push(name)));
    const done = [
      limiter.run({ fairnessKey: large, signal: NEVER }, first.task),
      run(large, 'large 1'),
      run(large, 'large 2'),
      run(large, 'large 3'),
    ];
    done.push(run(small, 'small 1'), run(small, 'small 2'));
    first.resolve();
    await Promise.all(done);
    expect(order).toEqual(['large 1', 'small 1', 'large 2', 'small 2', 'large 3']);
  });

  it('gives the next free slot to a key without running tasks first', async () => {
    const limiter = new FairLimiter(4);
    const order: string[] = [];
    const large = [{}, {}];
    const running = large.flatMap((fairnessKey) => [pending(), pending()].map((job) => ({ fairnessKey, job })));
    const done = running.map(({ fairnessKey, job }) => limiter.run({ fairnessKey, signal: NEVER }, job.task));
    const queue = (fairnessKey: object, name: string) =>
      done.push(limiter.run({ fairnessKey, signal: NEVER }, () => Promise.resolve(void order.push(name))));
    large.forEach((fairnessKey, index) => queue(fairnessKey, `large ${index}`));
    queue({}, 'small');
    running[0]?.job.resolve();
    await turns();
    expect(order[0]).toBe('small');
    running.forEach(({ job }) => job.resolve());
    await Promise.all(done);
    expect(order).toHaveLength(3);
  });

  it('an aborted waiting task rejects with the reason, does not run and frees its slot', async () => {
    const limiter = new FairLimiter(1);
    const canceled = new AbortController();
    const context = { fairnessKey: {}, signal: canceled.signal };
    const first = pending();
    const running = limiter.run({ fairnessKey: {}, signal: NEVER }, first.task);
    let ran = false;
    const abandoned = limiter.run(context, () => Promise.resolve(void (ran = true)));
    canceled.abort(new Error('canceled'));
    await expect(abandoned).rejects.toThrow('canceled');
    await expect(limiter.run(context, () => Promise.resolve(void (ran = true)))).rejects.toThrow('canceled');
    expect(limiter.queued).toBe(0);
    first.resolve();
    await running;
    await expect(limiter.run({ fairnessKey: {}, signal: NEVER }, () => Promise.resolve('next'))).resolves.toBe('next');
    expect(ran).toBe(false);
  });

  it('starts background tasks when no other task waits, whichever came first', async () => {
    const limiter = new FairLimiter(1);
    const order: string[] = [];
    const first = pending();
    const run = (name: string, context: object) =>
      limiter.run({ fairnessKey: {}, signal: NEVER, ...context }, () => Promise.resolve(void order.push(name)));
    const done = [limiter.run({ fairnessKey: {}, signal: NEVER, background: true }, first.task)];
    done.push(run('job', { background: true }), run('other job', { background: true }), run('call', {}));
    first.resolve();
    await turns();
    done.push(run('late call', {}));
    await Promise.all(done);
    expect(order).toEqual(['call', 'job', 'other job', 'late call']);
  });

  it('starts a waiting background task for which a call waits too as a task of the call', async () => {
    const limiter = new FairLimiter(2);
    const [first, second] = [pending(), pending()];
    const job = { fairnessKey: {}, signal: NEVER, background: true };
    const shared = { fairnessKey: {}, signal: NEVER, background: true };
    const done = [limiter.run(job, first.task), limiter.run(job, second.task)];
    let started = false;
    done.push(limiter.run(shared, () => Promise.resolve(void (started = true))));
    shared.background = false;
    limiter.startNext();
    await turns();
    expect(started).toBe(true);
    first.resolve();
    second.resolve();
    await Promise.all(done);
  });

  it('a task that may not start yet lets others go first, and starts when it may', async () => {
    const limiter = new FairLimiter(1);
    const order: string[] = [];
    let waitMs = Infinity;
    const context = { fairnessKey: {}, signal: NEVER };
    const held = limiter.run(
      context,
      () => Promise.resolve(void order.push('held')),
      () => waitMs,
    );
    const timed = limiter.run(
      context,
      () => Promise.resolve(void order.push('timed')),
      () => (order.length > 0 ? 0 : 1),
    );
    await limiter.run(context, () => Promise.resolve(void order.push('other')));
    await timed;
    waitMs = 0;
    limiter.startNext();
    await held;
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
