import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { BLOCKS_TO_OPEN } from './circuit-breaker.js';
import type { EgressUse } from './egress.js';
import { EgressPool } from './egress-pool.js';

function pool(count: number) {
  const clock = { nowMs: 0 };
  const events: unknown[][] = [];
  const registry = new Registry();
  const egresses = new EgressPool({
    registry,
    proxyUrls: Array.from({ length: count }, (_, index) => `http://user:secret@127.0.0.1:${index + 1}`),
    ...{ connectionsMax: 2, connectTimeoutMs: 1_000, now: () => clock.nowMs },
    onBreaker: (...change) => events.push(change),
    onCooldown: (...cooldown) => events.push(cooldown),
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

  it('exports which egresses cool down, and whose breaker is open for which use', async () => {
    const { egresses, clock, take, active } = pool(2);
    const state = async () => [await active('ct_upstream_exit_resting'), await active('ct_upstream_breaker_open')];
    const first = take();
    if (!first) throw new Error('no egress');
    expect(await state()).toEqual([[], []]);
    egresses.cooldown(first, 20);
    expect(await state()).toEqual([['proxy-1'], []]);
    clock.nowMs = 20_000;
    for (let channel = 0; channel < 2 * BLOCKS_TO_OPEN; channel += 1)
      egresses.take('channel')?.admission.blocked(`channel ${channel}`);
    expect(await state()).toEqual([[], ['proxy-1 channel', 'proxy-2 channel']]);
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
    expect(events).toEqual([['proxy-1', 20_000]]);
    expect(JSON.stringify(events)).not.toContain('secret');
  });

  it('uses the egress whose cooldown ends first when all of them cool down', () => {
    const { egresses, take, names } = pool(2);
    const [first, second] = [take(), take()];
    if (!first || !second) throw new Error('no egresses');
    egresses.cooldown(first, 50);
    egresses.cooldown(second, 20);
    expect(names(2)).toEqual(['proxy-2', 'proxy-2']);
  });

  it('gives a second attempt another egress that does not cool down, or none', () => {
    const { egresses, take } = pool(2);
    const [first, second] = [take(), take()];
    if (!first || !second) throw new Error('no egresses');
    expect(take([first.name])?.name).toBe('proxy-2');
    egresses.cooldown(second, 50);
    expect(take([first.name])).toBeUndefined();
  });

  it('never cools down a single egress', () => {
    const { egresses, take, events } = pool(1);
    const only = take();
    if (!only) throw new Error('no egress');
    egresses.cooldown(only, 50);
    expect(take()).toBe(only);
    expect(events).toEqual([]);
  });

  it('keeps an egress that is blocked for videos available for channels', () => {
    const { egresses, take } = pool(1);
    for (const video of ['a', 'b', 'c', 'd', 'e']) egresses.take('video')?.admission.blocked(video);
    expect(take()).toBeUndefined();
    expect(take([], 'channel')?.name).toBe('proxy-1');
  });

  it('the learned pace of players does not make the breaker of channels open earlier', async () => {
    const { egresses, clock, take } = pool(1);
    const pacer = take()?.pacer;
    const context = { signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {} };
    for (let sent = 0; sent < 20; sent += 1) {
      const attempt = egresses.take('video')?.admission;
      if (!attempt || !pacer) throw new Error('no egress');
      await pacer.waitForTurn('player', context, attempt);
      pacer.learn('player', { kind: 'json', value: {}, whole: false }, attempt);
      pacer.recordServed();
    }
    pacer?.learn('player', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: 60 });
    clock.nowMs += 60_000;
    egresses.take('video')?.admission.succeeded();
    expect(pacer?.learned).toBe(true);
    for (const channel of ['a', 'b', 'c', 'd']) egresses.take('channel')?.admission.blocked(channel);
    expect(take([], 'channel')?.name).toBe('proxy-1');
    for (const video of ['a', 'b']) egresses.take('video')?.admission.blocked(video);
    expect(take()).toBeUndefined();
  });
});
