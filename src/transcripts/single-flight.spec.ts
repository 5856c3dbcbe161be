import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Call, CallEnded } from './call.js';
import { SingleFlight } from './single-flight.js';
import type { ReadingContext } from '../platform/video-platform.js';

const nothing = (): Promise<void> => Promise.resolve();

/** A promise that the test settles. */
function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

function newCall(deadlineSeconds = 60): Call {
  return new Call(deadlineSeconds);
}

describe('SingleFlight', () => {
  it('reports a sent request to each waiting call, also to one that joins later', async () => {
    const shared = new SingleFlight<string>();
    const work = deferred<string>();
    const reported: string[] = [];
    const join = (name: string): Promise<unknown> => {
      const { signal, deadlineAtMs, fairnessKey } = call;
      const onRequest = (): void => void reported.push(name);
      return shared.join('key', { signal, deadlineAtMs, fairnessKey, onRequest }, start, nothing);
    };
    const call = newCall();
    let send = nothing as () => unknown;
    const start = (context: ReadingContext): Promise<string> => {
      send = () => context.onRequest?.();
      return work.promise;
    };
    const results = [join('first'), join('second')];
    expect(reported).toEqual([]);
    send();
    results.push(join('late'));
    expect(reported).toEqual(['first', 'second', 'late']);
    work.resolve('done');
    await Promise.all(results);
    call.finish();
  });

  it('passes ownership to the oldest waiting call when the call that started it disconnects', async () => {
    const shared = new SingleFlight<string>();
    const work = deferred<string>();
    const [first, second, third] = [newCall(), newCall(), newCall()];
    const results = [first, second, third].map((call) => shared.join('key', call, () => work.promise, nothing));
    first.disconnect();
    work.resolve('done');
    await expect(results[0]).rejects.toBeInstanceOf(CallEnded);
    await expect(results[1]).resolves.toEqual({ value: 'done', owner: true });
    await expect(results[2]).resolves.toEqual({ value: 'done', owner: false });
    second.finish();
    third.finish();
  });

  it('aborts work without waiting calls, and starts again for the next call', async () => {
    const shared = new SingleFlight<string>();
    const aborted = deferred<void>();
    let stores = 0;
    const store = (): Promise<void> => {
      stores++;
      return nothing();
    };
    const start = (context: ReadingContext): Promise<string> =>
      new Promise((_resolve, reject) => {
        context.signal.addEventListener('abort', () => {
          aborted.resolve();
          reject(context.signal.reason as Error);
        });
      });
    const [first, second, later] = [newCall(), newCall(), newCall()];
    const results = [first, second].map((call) => shared.join('key', call, start, store));
    first.disconnect();
    second.disconnect();
    await aborted.promise;
    await Promise.all(results.map((result) => expect(result).rejects.toBeInstanceOf(CallEnded)));
    await expect(shared.join('key', later, () => Promise.resolve('again'), store)).resolves.toEqual({
      value: 'again',
      owner: true,
    });
    expect(stores).toBe(1);
    later.finish();
  });

  it('does not change the owner when it disconnects while the result is stored', async () => {
    const shared = new SingleFlight<string>();
    const storing = deferred<void>();
    const stored = deferred<void>();
    const [payer, other] = [newCall(), newCall()];
    const store = (): Promise<void> => {
      storing.resolve();
      return stored.promise;
    };
    const results = [payer, other].map((call) => shared.join('key', call, () => Promise.resolve('done'), store));
    await storing.promise;
    payer.disconnect();
    stored.resolve();
    await expect(results[0]).resolves.toEqual({ value: 'done', owner: true });
    await expect(results[1]).resolves.toEqual({ value: 'done', owner: false });
    other.finish();
  });

  it('rejects all waiting calls when the work fails', async () => {
    const shared = new SingleFlight<string>();
    const [first, second] = [newCall(), newCall()];
    const results = [first, second].map((call) =>
      shared.join('key', call, () => Promise.reject(new Error('no')), nothing),
    );
    await Promise.all(results.map((result) => expect(result).rejects.toThrow('no')));
    first.finish();
    second.finish();
  });

  it('has the latest deadline of the waiting calls, and each call keeps its own', async () => {
    const shared = new SingleFlight<string>();
    const [late, early] = [newCall(60), newCall(0)];
    const contexts: ReadingContext[] = [];
    const work = deferred<string>();
    const start = (context: ReadingContext): Promise<string> => {
      contexts.push(context);
      return work.promise;
    };
    const earlyResult = shared.join('key', early, start, nothing);
    const lateResult = shared.join('key', late, start, nothing);
    expect(contexts[0]?.deadlineAtMs).toBe(late.deadlineAtMs);
    await expect(earlyResult).rejects.toThrow('deadline');
    work.resolve('done');
    await expect(lateResult).resolves.toEqual({ value: 'done', owner: true });
    late.finish();
  });

  it('is background work while only jobs wait for it', async () => {
    const shared = new SingleFlight<string>();
    const jobs = [new Call(60, { background: true }), new Call(60, { background: true })] as const;
    const call = newCall();
    const work = deferred<string>();
    const contexts: ReadingContext[] = [];
    const start = (context: ReadingContext): Promise<string> => {
      contexts.push(context);
      return work.promise;
    };
    const background = () => contexts[0]?.background;
    const results = jobs.map((job) => shared.join('key', job, start, nothing));
    expect(background()).toBe(true);
    const joined = shared.join('key', call, start, nothing);
    expect(background()).toBe(false);
    call.disconnect();
    await expect(joined).rejects.toBeInstanceOf(CallEnded);
    expect(background()).toBe(true);
    work.resolve('done');
    await Promise.all(results);
    jobs.forEach((job) => job.finish());
    expect(contexts).toHaveLength(1);
    const alone = newCall();
    await shared.join('other', alone, start, nothing);
    alone.finish();
    expect(contexts[1]?.background).toBe(false);
  });

  it('has one owner for each result, in any order of joining and disconnecting', async () => {
    const step = fc.record({ call: fc.nat(5), key: fc.nat(2), action: fc.constantFrom('join', 'disconnect', 'land') });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const shared = new SingleFlight<number>();
        const calls = Array.from({ length: 6 }, () => newCall());
        const flights: { key: number; id: number; work: ReturnType<typeof deferred<number>> }[] = [];
        const owned: number[] = [];
        const stored: number[] = [];
        const waiting: Promise<void>[] = [];
        for (const { call, key, action } of steps) {
          const joining = calls[call];
          if (!joining) continue;
          if (action === 'disconnect') joining.disconnect();
          if (action === 'land')
            flights.filter((flight) => flight.key === key).forEach(({ work, id }) => work.resolve(id));
          if (action !== 'join') continue;
          const start = (): Promise<number> => {
            const flight = { key, id: flights.length, work: deferred<number>() };
            flights.push(flight);
            return flight.work.promise;
          };
          const store = (id: number): Promise<void> => {
            stored.push(id);
            return nothing();
          };
          waiting.push(
            shared.join(String(key), joining, start, store).then(
              ({ value, owner }) => void (owner && owned.push(value)),
              () => undefined,
            ),
          );
        }
        flights.forEach(({ work, id }) => work.resolve(id));
        await Promise.all(waiting);
        calls.forEach((call) => call.finish());
        expect(new Set(owned).size).toBe(owned.length);
        expect(owned.sort()).toEqual(stored.sort());
      }),
    );
  });
});
