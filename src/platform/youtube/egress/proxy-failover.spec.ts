import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import type { AttemptVerdict } from './egress.js';
import { EgressPool } from './egress-pool.js';
import { withProxyFailover } from './proxy-failover.js';

Logger.overrideLogger(false);

/** Runs attempts with these verdicts, by the number of the egress; returns the path and the result. */
async function scope(verdicts: readonly AttemptVerdict[], egresses = pool(verdicts.length)) {
  const path: string[] = [];
  const result = await withProxyFailover(egresses, 'video', 'a video', context(), 0, ({ egress }) => {
    path.push(egress.name);
    const verdict = verdicts[Number(egress.name.replace('proxy-', '')) - 1] ?? 'nothing';
    return Promise.resolve({ result: `${verdict} by ${egress.name}`, verdict, retryAfterSeconds: null });
  });
  return { path, result };
}

const context = () => ({ signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {} });

function pool(count: number): EgressPool {
  const proxyUrls = Array.from({ length: count }, (_, index) => `http://127.0.0.1:${index + 1}`);
  return new EgressPool({ proxyUrls, connectionsMax: 1, connectTimeoutMs: 1_000, registry: new Registry() });
}

describe('withProxyFailover', () => {
  it.each<AttemptVerdict>(['answered', 'nothing'])('%s is final', async (verdict) => {
    expect(await scope([verdict, 'answered'])).toEqual({ path: ['proxy-1'], result: `${verdict} by proxy-1` });
  });

  it.each<AttemptVerdict>(['refused', 'unreached'])(
    '%s leads to the next egress, and this one cools down',
    async (verdict) => {
      const egresses = pool(2);
      expect(await scope([verdict, 'answered'], egresses)).toEqual({
        path: ['proxy-1', 'proxy-2'],
        result: 'answered by proxy-2',
      });
      expect((await scope([verdict, 'answered'], egresses)).path).toEqual(['proxy-2']);
    },
  );

  it('withheld texts are final', async () => {
    expect((await scope(['withheld', 'answered'])).path).toEqual(['proxy-1']);
  });

  it('a refusal takes precedence over an unreachable egress', async () => {
    expect((await scope(['refused', 'unreached'])).result).toBe('refused by proxy-1');
    expect((await scope(['unreached', 'refused'])).result).toBe('refused by proxy-2');
  });

  it('at most three egresses are tried', async () => {
    expect((await scope(['refused', 'refused', 'refused', 'answered'])).path).toEqual([
      'proxy-1',
      'proxy-2',
      'proxy-3',
    ]);
  });

  it('there is no result and no attempt when every egress is paused', async () => {
    const egresses = pool(1);
    const refused = () => ({ kind: 'refused', retryAfterSeconds: null }) as const;
    await withProxyFailover(egresses, 'video', 'a video', context(), 0, async (attempt) => {
      await attempt.egress.controls.player.run(attempt, () => Promise.resolve({ kind: 'sent' }), refused);
      return { result: null, verdict: 'refused', retryAfterSeconds: null };
    });
    expect(await scope(['answered'], egresses)).toEqual({ path: [], result: null });
  });

  it('an exception ends the attempt, for whose result others wait no longer', async () => {
    const egresses = pool(1);
    const doubtful = () => ({ kind: 'doubtful', client: 'ANDROID' }) as const;
    const failing = withProxyFailover(egresses, 'video', 'a video', context(), 0, async (attempt) => {
      await attempt.egress.controls.player.run(attempt, () => Promise.resolve({ kind: 'sent' }), doubtful);
      expect(attempt.egress.controls.player.asking).toBe(true);
      throw new Error('bug');
    });
    await expect(failing).rejects.toThrow('bug');
    expect(egresses.take('video')?.egress.controls.player.asking).toBe(false);
  });
});
