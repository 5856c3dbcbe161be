import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { AttemptVerdict } from './egress.js';
import { EgressPool } from './egress-pool.js';
import { EgressStateStore } from './egress-state-store.js';
import { withProxyFailover } from './proxy-failover.js';

/** Runs attempts with these verdicts, by the number of the egress; returns the path and the result. */
async function scope(verdicts: readonly AttemptVerdict[], egresses = pool(verdicts.length)) {
  const path: string[] = [];
  const result = await withProxyFailover(egresses, 'video', 'a video', context(), (egress) => {
    path.push(egress.name);
    const verdict = verdicts[Number(egress.name.replace('proxy-', '')) - 1] ?? 'nothing';
    return Promise.resolve({ result: `${verdict} by ${egress.name}`, verdict, retryAfterSeconds: null });
  });
  return { path, result };
}

const context = () => ({ signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {} });

function pool(count: number, now?: () => number, store?: EgressStateStore): EgressPool {
  const proxyUrls = Array.from({ length: count }, (_, index) => `http://127.0.0.1:${index + 1}`);
  return new EgressPool({
    proxyUrls,
    connectionsMax: 1,
    connectTimeoutMs: 1_000,
    registry: new Registry(),
    ...(now && { now }),
    ...(store && { store }),
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

  it('withheld texts are final and do not block the egress until they occur for several videos in a row', async () => {
    const egresses = pool(1);
    const withheld = (video: string) =>
      withProxyFailover(egresses, 'video', video, context(), () =>
        Promise.resolve({ result: 'withheld', verdict: 'withheld', retryAfterSeconds: null } as const),
      );
    for (const video of ['a', 'b', 'c', 'd', 'd', 'd']) expect(await withheld(video)).toBe('withheld');
    expect(await withheld('e')).toBe('withheld');
    expect(await withheld('f')).toBeNull();
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

  it('there is no result and no attempt when every egress is blocked', async () => {
    const egresses = pool(1);
    for (const video of ['a', 'b', 'c', 'd', 'e']) egresses.take('video')?.admission.blocked(video);
    expect(await scope(['answered'], egresses)).toEqual({ path: [], result: null });
  });

  it('an exception ends the attempt and releases its admission', async () => {
    const egresses = pool(1);
    const failing = withProxyFailover(egresses, 'video', 'v', context(), () => Promise.reject(new Error('bug')));
    await expect(failing).rejects.toThrow('bug');
    expect((await scope(['answered'], egresses)).path).toEqual(['proxy-1']);
  });

  it.each([
    [20, null],
    [100, expect.any(Number)],
  ])('bot checks after %i served requests teach the rate %p', async (served, rate) => {
    const clock = { nowMs: 1_000 };
    const egresses = pool(1, () => clock.nowMs);
    for (let video = 0; video < served; video += 1)
      await withProxyFailover(egresses, 'video', String(video), context(), async ({ pacer }, admission) => {
        await pacer?.waitForTurn('player', context(), admission);
        pacer?.recordServed();
        return { result: null, verdict: 'answered', retryAfterSeconds: null } as const;
      });
    for (const video of ['a', 'b', 'c', 'd', 'e'])
      await withProxyFailover(egresses, 'video', video, context(), () =>
        Promise.resolve({ result: null, verdict: 'refused', retryAfterSeconds: null } as const),
      );
    expect(egresses.take('video')).toBeNull();
    clock.nowMs += 30_000;
    egresses.take('video')?.admission.succeeded();
    expect(egresses.take('video')?.egress.pacer?.perMinute('player')).toEqual(rate);
  });

  it('releases the claim of a probe that ended without a result', async () => {
    const clock = { nowMs: 0 };
    const claims = new Set<string>();
    const documents = {
      configured: true,
      keyOf: (kind: string) => kind,
      update: () => Promise.resolve(undefined),
      claim: (key: string) => {
        if (claims.has(key)) return Promise.resolve(null);
        claims.add(key);
        return Promise.resolve(() => Promise.resolve(void claims.delete(key)));
      },
    };
    const egresses = pool(1, () => clock.nowMs, new EgressStateStore(documents));
    for (const video of ['a', 'b', 'c', 'd', 'e']) egresses.take('video')?.admission.blocked(video);
    clock.nowMs += 30_000;
    const seen: number[] = [];
    await withProxyFailover(egresses, 'video', 'f', context(), () => {
      seen.push(claims.size);
      return Promise.resolve({ result: null, verdict: 'nothing', retryAfterSeconds: null } as const);
    });
    expect([...seen, claims.size]).toEqual([1, 0]);
    await egresses.storeState();
  });
});
