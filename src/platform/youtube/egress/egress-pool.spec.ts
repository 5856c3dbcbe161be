import { describe, expect, it } from '@jest/globals';
import { BLOCKS_TO_OPEN } from './circuit-breaker.js';
import { type Egress, EgressPool, type EgressUse } from './egress-pool.js';

function pool(count: number) {
  const clock = { nowMs: 0 };
  const events: unknown[][] = [];
  const egresses = new EgressPool({
    proxyUrls: Array.from({ length: count }, (_, index) => `http://user:secret@127.0.0.1:${index + 1}`),
    ...{ connectionsMax: 2, connectTimeoutMs: 1_000, now: () => clock.nowMs },
    onBreaker: (...change) => events.push(change),
    onCooldown: (...cooldown) => events.push(cooldown),
  });
  const take = (excluded: Egress[] = [], use: EgressUse = 'video') => egresses.take(use, new Set(excluded))?.egress;
  const names = (times: number) => Array.from({ length: times }, () => take()?.name ?? null);
  return { egresses, clock, events, take, names };
}

describe('Exits', () => {
  it('gives each exit its turn', () => {
    expect(pool(3).names(4)).toEqual(['proxy-1', 'proxy-2', 'proxy-3', 'proxy-1']);
  });

  it('without proxies there is the direct way', () => {
    expect(new EgressPool({ proxyUrls: [], connectionsMax: 1, connectTimeoutMs: 1 }).take('video')?.egress.name).toBe(
      'direct',
    );
  });

  it('tells how each exit stands: which rests, which is shut and for what', () => {
    const { egresses, clock, take } = pool(2);
    const first = take();
    if (!first) throw new Error('no exit');
    const fresh = (name: string) => ({ name, coolingDown: false, blocked: { channel: false, video: false } });
    expect(egresses.state()).toEqual([fresh('proxy-1'), fresh('proxy-2')]);
    egresses.cooldown(first, 20);
    expect(egresses.state()).toEqual([{ ...fresh('proxy-1'), coolingDown: true }, fresh('proxy-2')]);
    clock.nowMs = 20_000;
    for (let channel = 0; channel < 2 * BLOCKS_TO_OPEN; channel += 1)
      egresses.take('channel')?.admission.blocked(`channel ${channel}`);
    const blocked = { channel: true, video: false };
    expect(egresses.state()).toEqual(['proxy-1', 'proxy-2'].map((name) => ({ ...fresh(name), blocked })));
  });

  it('passes over one that rests until it has rested, and names no password', () => {
    const { egresses, clock, events, take, names } = pool(2);
    const first = take();
    if (!first) throw new Error('no exit');
    egresses.cooldown(first, 20);
    expect(names(3)).toEqual(['proxy-2', 'proxy-2', 'proxy-2']);
    clock.nowMs = 20_000;
    expect(new Set(names(2))).toEqual(new Set(['proxy-1', 'proxy-2']));
    expect(events).toEqual([['proxy-1', 20_000]]);
    expect(JSON.stringify(events)).not.toContain('secret');
  });

  it('uses one that rests when all of them do, the one that has rested longest first', () => {
    const { egresses, take, names } = pool(2);
    const [first, second] = [take(), take()];
    if (!first || !second) throw new Error('no exits');
    egresses.cooldown(first, 50);
    egresses.cooldown(second, 20);
    expect(names(2)).toEqual(['proxy-2', 'proxy-2']);
  });

  it('a second try of the same work goes to another exit that does not rest, or nowhere', () => {
    const { egresses, take } = pool(2);
    const [first, second] = [take(), take()];
    if (!first || !second) throw new Error('no exits');
    expect(take([first])?.name).toBe('proxy-2');
    egresses.cooldown(second, 50);
    expect(take([first])).toBeUndefined();
  });

  it('a single exit never rests', () => {
    const { egresses, take, events } = pool(1);
    const only = take();
    if (!only) throw new Error('no exit');
    egresses.cooldown(only, 50);
    expect(take()).toBe(only);
    expect(events).toEqual([]);
  });

  it('an exit that is shut for videos is still open for channels, and the others are not shut', () => {
    const { egresses, take } = pool(1);
    for (const video of ['a', 'b', 'c', 'd', 'e']) egresses.take('video')?.admission.blocked(video);
    expect(take()).toBeUndefined();
    expect(take([], 'channel')?.name).toBe('proxy-1');
  });
});
