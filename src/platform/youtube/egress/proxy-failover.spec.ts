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

function pool(count: number, now?: () => number): EgressPool {
  const proxyUrls = Array.from({ length: count }, (_, index) => `http://127.0.0.1:${index + 1}`);
  return new EgressPool({
    proxyUrls,
    connectionsMax: 1,
    connectTimeoutMs: 1_000,
    registry: new Registry(),
    ...(now && { now }),
  });
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
    await withProxyFailover(egresses, 'video', 'a video', context(), 0, (attempt) => {
      attempt.egress.controls.player.learn(attempt, { kind: 'refused', retryAfterSeconds: null });
      return Promise.resolve({ result: null, verdict: 'refused', retryAfterSeconds: null } as const);
    });
    expect(await scope(['answered'], egresses)).toEqual({ path: [], result: null });
  });

  it('an exception ends the attempt, for whose result others do not wait', async () => {
    const clock = { nowMs: 0 };
    const egresses = pool(1, () => clock.nowMs);
    const failing = () =>
      withProxyFailover(egresses, 'channel', 'c', context(), 0, (attempt) => {
        attempt.egress.controls.lists.learn(attempt, { kind: 'refused', retryAfterSeconds: null });
        return Promise.reject(new Error('bug'));
      });
    await expect(failing()).rejects.toThrow('bug');
    clock.nowMs += 30_000;
    const probe = withProxyFailover(egresses, 'channel', 'c', context(), 0, () => Promise.reject(new Error('bug')));
    await expect(probe).rejects.toThrow('bug');
    const list = (subject: string) =>
      withProxyFailover(egresses, 'channel', subject, context(), 0, () =>
        Promise.resolve({ result: subject, verdict: 'answered', retryAfterSeconds: null } as const),
      );
    expect(await list('d')).toBe('d');
  });
});

describe('lists', () => {
  function lists() {
    const clock = { nowMs: 0 };
    const egresses = pool(1, () => clock.nowMs);
    const list = (channel: string, verdict: AttemptVerdict, retryAfterSeconds: number | null = null) =>
      withProxyFailover(egresses, 'channel', channel, context(), 0, () =>
        Promise.resolve({ result: verdict, verdict, retryAfterSeconds }),
      );
    return { clock, list, egresses };
  }

  it('are paused when two channels in a row are refused, and probed afterwards', async () => {
    const { clock, list, egresses } = lists();
    for (const channel of ['a', 'a', 'a', 'b']) expect(await list(channel, 'refused')).toBe('refused');
    expect(await list('c', 'answered')).toBeNull();
    expect(egresses.take('video')).not.toBeNull();
    clock.nowMs += 30_000;
    expect(await list('c', 'refused')).toBe('refused');
    clock.nowMs += 30_000;
    expect(await list('c', 'answered')).toBeNull();
    clock.nowMs += 30_000;
    expect(await list('c', 'answered')).toBe('answered');
    expect(await list('a', 'refused')).toBe('refused');
    expect(await list('c', 'answered')).toBe('answered');
  });

  it('are paused by one refusal with Retry-After, for so long', async () => {
    const { clock, list } = lists();
    await list('a', 'refused', 5);
    expect(await list('b', 'answered')).toBeNull();
    clock.nowMs += 5_000;
    expect(await list('b', 'answered')).toBe('answered');
  });
});
