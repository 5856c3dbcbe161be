import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { newContext, newExperiment, newPool, nextEgress } from '../../../../test/youtube/egresses.js';
import type { ReadingContext } from '../../video-platform.js';
import { type AttemptEnd, RetryBudget } from './attempt.js';
import type { AttemptResult, EgressPool } from './egress-pool.js';
import type { RequestScope } from './request-pipeline.js';

Logger.overrideLogger(false);

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
