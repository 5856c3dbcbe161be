import { describe, expect, it } from '@jest/globals';
import { type Finding, throughExits } from './proxy-failover.js';
import { Exits } from './egress-pool.js';

/** Works through a pool whose exits find this, by name; says where it went and what came of it. */
async function work(findings: readonly Finding[], exits = pool(findings.length)) {
  const path: string[] = [];
  const result = await throughExits(exits, 'video', 'a video', context(), (exit) => {
    path.push(exit.name);
    const finding = findings[Number(exit.name.replace('proxy-', '')) - 1] ?? 'nothing';
    return Promise.resolve({ result: `${finding} by ${exit.name}`, finding, retryAfterSeconds: null });
  });
  return { path, result };
}

const context = () => ({ signal: new AbortController().signal, deadlineAtMs: Infinity, lane: {} });

function pool(count: number): Exits {
  const proxyUrls = Array.from({ length: count }, (_, index) => `http://127.0.0.1:${index + 1}`);
  return new Exits({ proxyUrls, connectionsMax: 1, connectTimeoutMs: 1_000 });
}

describe('throughExits', () => {
  it.each<Finding>(['answered', 'nothing'])('%s is final', async (finding) => {
    expect(await work([finding, 'answered'])).toEqual({ path: ['proxy-1'], result: `${finding} by proxy-1` });
  });

  it.each<Finding>(['refused', 'unreached'])('%s leads to the next exit, and this one rests', async (finding) => {
    const exits = pool(2);
    expect(await work([finding, 'answered'], exits)).toEqual({
      path: ['proxy-1', 'proxy-2'],
      result: 'answered by proxy-2',
    });
    expect((await work([finding, 'answered'], exits)).path).toEqual(['proxy-2']);
  });

  it('withheld texts end the work and leave the exit in use, until they are one video after another', async () => {
    const exits = pool(1);
    const withheld = (video: string) =>
      throughExits(exits, 'video', video, context(), () =>
        Promise.resolve({ result: 'withheld', finding: 'withheld', retryAfterSeconds: null } as const),
      );
    for (const video of ['a', 'b', 'c', 'd', 'd', 'd']) expect(await withheld(video)).toBe('withheld');
    expect(await withheld('e')).toBe('withheld');
    expect(await withheld('f')).toBeNull();
  });

  it('a refusal at one exit is not covered up by another one that nothing gets through', async () => {
    expect((await work(['refused', 'unreached'])).result).toBe('refused by proxy-1');
    expect((await work(['unreached', 'refused'])).result).toBe('refused by proxy-2');
  });

  it('three exits are tried and no more', async () => {
    expect((await work(['refused', 'refused', 'refused', 'answered'])).path).toEqual(['proxy-1', 'proxy-2', 'proxy-3']);
  });

  it('with every exit shut there is no result and no try', async () => {
    const exits = pool(1);
    for (const video of ['a', 'b', 'c', 'd', 'e']) exits.take('video')?.admission.blocked(video);
    expect(await work(['answered'], exits)).toEqual({ path: [], result: null });
  });

  it('one who leaves, and a bug, end the try and let the next one probe', async () => {
    const exits = pool(1);
    const failing = throughExits(exits, 'video', 'v', context(), () => Promise.reject(new Error('bug')));
    await expect(failing).rejects.toThrow('bug');
    expect((await work(['answered'], exits)).path).toEqual(['proxy-1']);
  });
});
