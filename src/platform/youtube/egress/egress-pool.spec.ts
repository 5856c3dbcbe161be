import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { recordedEvents } from '../../../../test/youtube/recorded-events.js';
import type { ControlledKind, Egress, EgressUse } from './egress.js';
import { EgressPool } from './egress-pool.js';

/** Has a request refused for the address of an egress. */
async function refuse({ controls }: Egress, kind: ControlledKind, retryAfterSeconds: number | null = null) {
  const context = { signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {} };
  const response = () => Promise.resolve({ kind: 'done' });
  await controls[kind].run({ subject: 'a', context }, response, () => ({ kind: 'refused', retryAfterSeconds }));
}

function pool(count: number) {
  const clock = { nowMs: 0 };
  const events = recordedEvents();
  const registry = new Registry();
  const egresses = new EgressPool({
    registry,
    proxyUrls: Array.from({ length: count }, (_, index) => `http://user:secret@127.0.0.1:${index + 1}`),
    ...{ connectionsMax: 2, connectTimeoutMs: 1_000, now: () => clock.nowMs },
  });
  const take = (tried: string[] = [], use: EgressUse = 'video') => egresses.take(use, tried)?.egress;
  const names = (times: number) => Array.from({ length: times }, () => take()?.name ?? null);
  /** The series of a gauge whose value is 1. */
  const active = async (name: string) =>
    ((await registry.getSingleMetric(name)?.get())?.values ?? [])
      .filter(({ value }) => value === 1)
      .map(({ labels }) => Object.values(labels).join(' '));
  const counted = async () => (await registry.getSingleMetric('ct_upstream_exit_findings_total')?.get())?.values ?? [];
  return { egresses, clock, events, take, names, active, counted };
}

describe('the egress pool', () => {
  it('rotates through the egresses', () => {
    expect(pool(3).names(4)).toEqual(['proxy-1', 'proxy-2', 'proxy-3', 'proxy-1']);
  });

  it('has one direct egress without proxies', () => {
    const options = { proxyUrls: [], connectionsMax: 1, connectTimeoutMs: 1, registry: new Registry() };
    expect(new EgressPool(options).take('video')?.egress.name).toBe('direct');
  });

  it('exports which egresses cool down, and which are refused for which use', async () => {
    const { egresses, clock, take, active } = pool(2);
    const state = async () => [await active('ct_upstream_exit_resting'), await active('ct_upstream_breaker_open')];
    const first = take();
    if (!first) throw new Error('no egress');
    expect(await state()).toEqual([[], []]);
    egresses.cooldown(first, 20);
    expect(await state()).toEqual([['proxy-1'], []]);
    clock.nowMs = 20_000;
    await refuse(first, 'lists');
    await refuse(first, 'captions');
    expect(await state()).toEqual([[], ['proxy-1 channel', 'proxy-1 video']]);
    clock.nowMs = 50_000;
    // Refused until a probe is served.
    expect(await state()).toEqual([[], ['proxy-1 channel', 'proxy-1 video']]);
  });

  it('exports every verdict of every egress from the start, and counts them', async () => {
    const { egresses, take, counted } = pool(2);
    expect(await counted()).toHaveLength(2 * 2 * 6);
    const first = take();
    if (!first) throw new Error('no egress');
    egresses.recordVerdict(first, 'video', 'withheld');
    expect((await counted()).filter(({ value }) => value > 0)).toEqual([
      { labels: { exit: 'proxy-1', use: 'video', finding: 'withheld' }, value: 1 },
    ]);
  });

  it('skips an egress that cools down, and reports no password', () => {
    const { egresses, clock, events, take, names } = pool(2);
    const first = take();
    if (!first) throw new Error('no egress');
    egresses.cooldown(first, 20);
    expect(names(3)).toEqual(['proxy-2', 'proxy-2', 'proxy-2']);
    clock.nowMs = 20_000;
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
    expect(events).toEqual([{ event: 'youtube_exit_rested', exit: 'proxy-1', restSeconds: 20 }]);
    expect(JSON.stringify(events)).not.toContain('secret');
  });

  it('gives a second attempt another egress that does not cool down, or none', () => {
    const { egresses, take } = pool(2);
    const [first, second] = [take(), take()];
    if (!first || !second) throw new Error('no egresses');
    expect(take([first.name])?.name).toBe('proxy-2');
    egresses.cooldown(second, 50);
    expect(take([first.name])).toBeUndefined();
    // For a first attempt, one that cools down is better than none.
    egresses.cooldown(first, 20);
    expect(take()?.name).toBe('proxy-1');
  });

  it('never cools down a single egress', () => {
    const { egresses, take, events } = pool(1);
    const only = take();
    if (!only) throw new Error('no egress');
    egresses.cooldown(only, 50);
    expect(take()).toBe(only);
    expect(events).toEqual([]);
  });
});
