import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { newPool, newScope } from '../../../../test/youtube/egresses.js';
import type { AttemptVerdict } from './egress.js';
import { withProxyFailover } from './proxy-failover.js';
import type { AddressVerdict } from './request-control.js';
import type { RequestScope } from './request-pipeline.js';

Logger.overrideLogger(false);

/** Runs attempts with these verdicts, by the number of the egress; returns the path and the result. */
async function attempts(verdicts: readonly AttemptVerdict[], egresses = newPool(verdicts.length)) {
  const path: string[] = [];
  const result = await withProxyFailover(egresses, 'video', 'a video', newScope().context, 0, ({ egress }) => {
    path.push(egress.name);
    const verdict = verdicts[Number(egress.name.replace('proxy-', '')) - 1] ?? 'nothing';
    return Promise.resolve({ result: `${verdict} by ${egress.name}`, verdict });
  });
  return { path, result };
}

describe('withProxyFailover', () => {
  it.each<AttemptVerdict>(['answered', 'nothing', 'withheld'])('%s is final', async (verdict) => {
    expect(await attempts([verdict, 'answered'])).toEqual({ path: ['proxy-1'], result: `${verdict} by proxy-1` });
  });

  it.each<AttemptVerdict>(['refused', 'unreached'])(
    '%s leads to the next, and this one cools down',
    async (verdict) => {
      const egresses = newPool(2);
      for (const path of [['proxy-1', 'proxy-2'], ['proxy-2']])
        expect(await attempts([verdict, 'answered'], egresses)).toEqual({ path, result: 'answered by proxy-2' });
    },
  );

  it('a refusal takes precedence over an unreachable egress', async () => {
    expect((await attempts(['refused', 'unreached'])).result).toBe('refused by proxy-1');
    expect((await attempts(['unreached', 'refused'])).result).toBe('refused by proxy-2');
  });

  it('at most three egresses are tried', async () => {
    const { path } = await attempts(['refused', 'refused', 'refused', 'answered']);
    expect(path).toEqual(['proxy-1', 'proxy-2', 'proxy-3']);
  });

  /** An attempt in which a request for a player gets a verdict. */
  const asks = ({ egress, attempt, context }: RequestScope, verdict: AddressVerdict) =>
    egress.controls.video.run(
      { kind: 'player', attempt, context },
      () => Promise.resolve({ kind: 'sent' }),
      () => verdict,
    );

  it('there is no result and no attempt when every egress is paused', async () => {
    const egresses = newPool(1);
    await withProxyFailover(egresses, 'video', 'a video', newScope().context, 0, async (scope) => {
      await asks(scope, { kind: 'refused', retryAfterSeconds: null });
      return { result: null, verdict: 'refused' };
    });
    expect(await attempts(['answered'], egresses)).toEqual({ path: [], result: null });
  });

  it('an exception ends the attempt, for whose result others wait no longer', async () => {
    const egresses = newPool(1);
    const failing = withProxyFailover(egresses, 'video', 'a video', newScope().context, 0, async (scope) => {
      await asks(scope, { kind: 'doubtful' });
      expect(scope.egress.controls.video.asking).toBe(true);
      throw new Error('bug');
    });
    await expect(failing).rejects.toThrow('bug');
    expect(egresses.take('video')?.egress.controls.video.asking).toBe(false);
  });
});
