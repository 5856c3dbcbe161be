import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Call, CallEnded } from '../call.js';
import { SingleFlight } from './single-flight.js';
import type { ReadingContext } from '../../platform/video-platform.js';

const nothing = (): Promise<void> => Promise.resolve();

/** A promise that the test settles. */
function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((yes) => (resolve = yes));
  return { promise, resolve };
}

let shared: SingleFlight<string>;
let work: ReturnType<typeof deferred<string>>;
/** The context of the work that was started last. */
let flight: ReadingContext | undefined;
const calls: Call[] = [];

beforeEach(() => {
  shared = new SingleFlight();
  work = deferred();
});
afterEach(() => calls.splice(0).forEach((call) => call.finish()));

function newCall(deadlineSeconds = 60, background = false): Call {
  const call = new Call(deadlineSeconds, { background });
  calls.push(call);
  return call;
}

const start = (context: ReadingContext): Promise<string> => {
  flight = context;
  return work.promise;
};
const join = (context: ReadingContext, store = nothing) => shared.join('key', context, start, store);

describe('SingleFlight', () => {
  it('reports a sent request to each waiting call, also to one that joins later', async () => {
    const { signal, deadlineAtMs, organizationId, fairnessKey } = newCall();
    const reported: string[] = [];
    const joinAs = (name: string) =>
      join({ signal, deadlineAtMs, organizationId, fairnessKey, onRequest: () => void reported.push(name) });
    const results = [joinAs('first'), joinAs('second')];
    expect(reported).toEqual([]);
    flight?.onRequest?.();
    results.push(joinAs('late'));
    expect(reported).toEqual(['first', 'second', 'late']);
    work.resolve('done');
    await Promise.all(results);
  });

  it('passes ownership to the oldest waiting call when the call that started it disconnects', async () => {
    const [first, second, third] = [newCall(), newCall(), newCall()];
    const results = [first, second, third].map((call) => join(call));
    first.disconnect();
    work.resolve('done');
    await expect(results[0]).rejects.toBeInstanceOf(CallEnded);
    await expect(results[1]).resolves.toEqual({ value: 'done', owner: true });
    await expect(results[2]).resolves.toEqual({ value: 'done', owner: false });
  });

  it('aborts work without waiting calls, and starts again for the next call', async () => {
    const [first, second] = [newCall(), newCall()];
    const results = [first, second].map((call) => join(call));
    const aborted = flight?.signal;
    first.disconnect();
    expect(aborted?.aborted).toBe(false);
    second.disconnect();
    expect(aborted?.aborted).toBe(true);
    await Promise.all(results.map((result) => expect(result).rejects.toBeInstanceOf(CallEnded)));
    work = deferred();
    const again = join(newCall());
    work.resolve('again');
    await expect(again).resolves.toEqual({ value: 'again', owner: true });
  });

  it('does not change the owner when it disconnects while the result is stored', async () => {
    const storing = deferred<void>();
    const stored = deferred<void>();
    const store = (): Promise<void> => {
      storing.resolve();
      return stored.promise;
    };
    const [payer, other] = [newCall(), newCall()];
    const results = [payer, other].map((call) => join(call, store));
    work.resolve('done');
    await storing.promise;
    payer.disconnect();
    stored.resolve();
    await expect(results[0]).resolves.toEqual({ value: 'done', owner: true });
    await expect(results[1]).resolves.toEqual({ value: 'done', owner: false });
  });

  it('rejects all waiting calls when the work fails', async () => {
    const failing = () => shared.join('key', newCall(), () => Promise.reject(new Error('no')), nothing);
    await Promise.all([failing(), failing()].map((result) => expect(result).rejects.toThrow('no')));
  });

  it('has the latest deadline of the waiting calls, and each call keeps its own', async () => {
    const late = newCall(60);
    const results = [join(newCall(0)), join(late)];
    expect(flight?.deadlineAtMs).toBe(late.deadlineAtMs);
    await expect(results[0]).rejects.toThrow('deadline');
    work.resolve('done');
    await expect(results[1]).resolves.toEqual({ value: 'done', owner: true });
  });

  it('is background work while only jobs wait for it', async () => {
    const jobs = [newCall(60, true), newCall(60, true)].map((job) => join(job));
    expect(flight?.background).toBe(true);
    const call = newCall();
    const joined = join(call);
    expect(flight?.background).toBe(false);
    call.disconnect();
    await expect(joined).rejects.toBeInstanceOf(CallEnded);
    expect(flight?.background).toBe(true);
    work.resolve('done');
    await Promise.all(jobs);
  });

  it('has one owner for each result, in any order of joining and disconnecting', async () => {
    const step = fc.record({ call: fc.nat(5), key: fc.nat(2), action: fc.constantFrom('join', 'disconnect', 'land') });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const numbered = new SingleFlight<number>();
        const joining = Array.from({ length: 6 }, () => newCall());
        const flights: { key: number; id: number; work: ReturnType<typeof deferred<number>> }[] = [];
        const owned: number[] = [];
        const stored: number[] = [];
        const waiting: Promise<void>[] = [];
        const begin = (key: number) => (): Promise<number> => {
          const begun = { key, id: flights.length, work: deferred<number>() };
          flights.push(begun);
          return begun.work.promise;
        };
        const store = (id: number): Promise<void> => {
          stored.push(id);
          return nothing();
        };
        for (const { call: index, key, action } of steps) {
          const call = joining[index];
          if (!call) continue;
          if (action === 'disconnect') call.disconnect();
          else if (action === 'land')
            flights.filter((begun) => begun.key === key).forEach((begun) => begun.work.resolve(begun.id));
          else
            waiting.push(
              numbered.join(String(key), call, begin(key), store).then(
                ({ value, owner }) => void (owner && owned.push(value)),
                () => undefined,
              ),
            );
        }
        flights.forEach((begun) => begun.work.resolve(begun.id));
        await Promise.all(waiting);
        calls.splice(0).forEach((call) => call.finish());
        expect(new Set(owned).size).toBe(owned.length);
        expect(owned.sort()).toEqual(stored.sort());
      }),
    );
  });
});
