import { describe, expect, it } from '@jest/globals';
import { newScope } from '../../../test/youtube/egresses.js';
import type { RequestScope } from './egress/request-pipeline.js';
import { withOptional } from './optional-work.js';

const scope = (signal = new AbortController().signal) => newScope({ signal });

/** Ends only when it is told to stop, as everything that watches its signal does. */
const untilStopped = ({ context }: RequestScope) =>
  new Promise<never>((_resolve, reject) => {
    context.signal.addEventListener('abort', () => reject(context.signal.reason as Error));
  });

describe('withOptional', () => {
  const main = () => Promise.resolve('main');

  it('returns both results', async () => {
    await expect(withOptional(scope(), main, () => Promise.resolve('side'))).resolves.toEqual(['main', 'side']);
  });

  it('optional work for a job is background work as long as the main work is', async () => {
    const shared = { ...scope().context, background: true };
    const seen: (boolean | undefined)[] = [];
    await withOptional({ ...scope(), context: shared }, main, ({ context }) => {
      seen.push(context.background);
      shared.background = false;
      seen.push(context.background);
      return Promise.resolve();
    });
    expect(seen).toEqual([true, false]);
  });

  it('a failure of the optional work does not affect the main result', async () => {
    await expect(withOptional(scope(), main, () => Promise.reject(new Error('side')))).resolves.toEqual(['main', null]);
  });

  it('optional work that exceeds the grace period is aborted', async () => {
    await expect(withOptional(scope(), main, untilStopped, 5)).resolves.toEqual(['main', null]);
  });

  it('a failure of the main work aborts the optional work and is thrown', async () => {
    let stopped = false;
    const side = (optionalScope: RequestScope) => untilStopped(optionalScope).finally(() => (stopped = true));
    await expect(withOptional(scope(), () => Promise.reject(new Error('main')), side)).rejects.toThrow('main');
    await new Promise(setImmediate);
    expect(stopped).toBe(true);
  });

  it('an abort during the grace period rejects with its reason', async () => {
    const leaving = new AbortController();
    const done = withOptional(scope(leaving.signal), main, untilStopped, 60_000);
    setImmediate(() => leaving.abort(new Error('left')));
    await expect(done).rejects.toThrow('left');
  });
});
