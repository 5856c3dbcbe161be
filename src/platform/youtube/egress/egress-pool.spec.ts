import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { newPool, newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { recordedEvents } from '../../../../test/youtube/recorded-events.js';
import type { Egress } from './egress.js';

/** Has a request refused for the address of an egress. */
async function refuse({ controls }: Egress, kind: 'list' | 'captions') {
  const { attempt, context } = newScope();
  const control = kind === 'list' ? controls.channel : controls.video;
  const refused = () => ({ kind: 'refused', retryAfterSeconds: null }) as const;
  await control.run({ kind, attempt, context }, () => Promise.resolve({ kind: 'done' }), refused);
}

function pool(count: number) {
  const clock = { nowMs: 0 };
  const events = recordedEvents();
  const registry = new Registry();
  const egresses = newPool(count, registry, () => clock.nowMs);
  const take = (tried: string[] = []) => egresses.take('video', tried)?.egress;
  const names = (times: number) => Array.from({ length: times }, () => take()?.name ?? null);
  const valuesOf = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values ?? [];
  /** The series of a gauge whose value is 1. */
  const active = async (name: string) =>
    (await valuesOf(name)).filter(({ value }) => value === 1).map(({ labels }) => Object.values(labels).join(' '));
  return { egresses, clock, events, take, names, active, valuesOf };
}

describe('the egress pool', () => {
  it('rotates through the egresses', () => {
    expect(pool(3).names(4)).toEqual(['proxy-1', 'proxy-2', 'proxy-3', 'proxy-1']);
  });

  it('has one direct egress without proxies', () => {
    expect(pool(0).names(2)).toEqual(['direct', 'direct']);
  });

  it('exports which egresses cool down, and which are refused for which use', async () => {
    const { egresses, clock, active, events } = pool(2);
    const state = async () => [await active('ct_upstream_exit_resting'), await active('ct_upstream_breaker_open')];
    const first = nextEgress(egresses);
    expect(await state()).toEqual([[], []]);
    egresses.recordVerdict(first, 'video', 'unreached');
    expect(await state()).toEqual([['proxy-1'], []]);
    clock.nowMs = 60_000;
    await refuse(first, 'list');
    await refuse(first, 'captions');
    expect(await state()).toEqual([[], ['proxy-1 channel', 'proxy-1 video']]);
    clock.nowMs = 90_000;
    // Refused until a probe is served.
    expect(await state()).toEqual([[], ['proxy-1 channel', 'proxy-1 video']]);
    expect(events.map(({ event, use }) => [event, use])).toEqual([
      ['youtube_exit_rested', undefined],
      ['youtube_block_opened', 'channel'],
      ['youtube_block_opened', 'video'],
    ]);
  });

  it('exports every verdict of every egress from the start, and counts them', async () => {
    const { egresses, valuesOf } = pool(2);
    const counted = () => valuesOf('ct_upstream_exit_findings_total');
    expect(await counted()).toHaveLength(2 * 2 * 6);
    egresses.recordVerdict(nextEgress(egresses), 'video', 'withheld');
    expect((await counted()).filter(({ value }) => value > 0)).toEqual([
      { labels: { exit: 'proxy-1', use: 'video', finding: 'withheld' }, value: 1 },
    ]);
  });

  it('skips an egress that cools down, and reports no password', () => {
    const { egresses, clock, events, names } = pool(2);
    egresses.recordVerdict(nextEgress(egresses), 'video', 'unreached');
    expect(names(3)).toEqual(['proxy-2', 'proxy-2', 'proxy-2']);
    clock.nowMs = 60_000;
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
    expect(events).toEqual([{ event: 'youtube_exit_rested', exit: 'proxy-1', restSeconds: 60 }]);
    expect(JSON.stringify(events)).not.toContain('secret');
  });

  it('gives a second attempt another egress that does not cool down, or none', () => {
    const { egresses, clock, take } = pool(2);
    const [first, second] = [nextEgress(egresses), nextEgress(egresses)];
    expect(take([first.name])?.name).toBe('proxy-2');
    egresses.recordVerdict(first, 'video', 'unreached');
    clock.nowMs = 1_000;
    egresses.recordVerdict(second, 'video', 'unreached');
    expect(take([first.name])).toBeUndefined();
    // For a first attempt, one that cools down is better than none.
    expect(take()?.name).toBe('proxy-1');
  });

  it('never cools down a single egress', () => {
    const { egresses, take, events } = pool(1);
    const only = nextEgress(egresses);
    egresses.recordVerdict(only, 'video', 'unreached');
    expect([take(), events]).toEqual([only, []]);
  });
});
