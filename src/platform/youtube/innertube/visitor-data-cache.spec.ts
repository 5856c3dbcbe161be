import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { EgressPool } from '../egress/egress-pool.js';
import { VisitorDataCache } from './visitor-data-cache.js';

const NEVER = new AbortController().signal;

function egresses(count: number) {
  const pool = new EgressPool({
    registry: new Registry(),
    proxyUrls: Array.from({ length: count }, (_, index) => `http://127.0.0.1:${index + 1}`),
    ...{ connectionsMax: 1, connectTimeoutMs: 1_000 },
  });
  return Array.from({ length: count }, () => {
    const taken = pool.take('video');
    if (!taken) throw new Error('no exit');
    return taken.egress;
  });
}

function deskAt(issue: () => Promise<string | null>) {
  const clock = { nowMs: 0 };
  let asked = 0;
  const ask = () => {
    asked += 1;
    return issue();
  };
  const visitorDataCache = new VisitorDataCache(
    ask,
    () => 'local',
    () => clock.nowMs,
  );
  return { visitorDataCache, clock, asked: () => asked };
}

describe('VisitorDesk', () => {
  it('asks once for each client of each exit, however many come at once', async () => {
    const [one, other] = egresses(2);
    if (!one || !other) throw new Error('no exits');
    let issued = 0;
    const { visitorDataCache, asked } = deskAt(() => Promise.resolve(`issued ${(issued += 1)}`));
    const get = (egress = one, client: 'WEB' | 'ANDROID' = 'WEB') => visitorDataCache.get(egress, client, NEVER);
    await expect(Promise.all([get(), get(), get()])).resolves.toEqual(['issued 1', 'issued 1', 'issued 1']);
    await expect(Promise.all([get(one, 'ANDROID'), get(other)])).resolves.toEqual(['issued 2', 'issued 3']);
    await expect(get()).resolves.toBe('issued 1');
    expect(asked()).toBe(3);
  });

  it.each<[string, () => Promise<string | null>]>([
    ['nothing', () => Promise.resolve(null)],
    ['an error', () => Promise.reject(new Error('blocked'))],
    [
      'an exception',
      () => {
        throw new Error('bug');
      },
    ],
  ])('%s instead of one means the local one, and another try only after a while', async (_name, issue) => {
    const [egress] = egresses(1);
    if (!egress) throw new Error('no exit');
    const { visitorDataCache, clock, asked } = deskAt(issue);
    await expect(visitorDataCache.get(egress, 'WEB', NEVER)).resolves.toBe('local');
    await visitorDataCache.get(egress, 'WEB', NEVER);
    expect(asked()).toBe(1);
    clock.nowMs = 30_001;
    await visitorDataCache.get(egress, 'WEB', NEVER);
    expect(asked()).toBe(2);
  });

  it('a new one is asked for after a bot check, but not one per refused video', async () => {
    const [egress] = egresses(1);
    if (!egress) throw new Error('no exit');
    let issued = 0;
    const { visitorDataCache, clock } = deskAt(() => Promise.resolve(`issued ${(issued += 1)}`));
    await visitorDataCache.get(egress, 'WEB', NEVER);
    visitorDataCache.invalidate(egress, 'WEB');
    await expect(visitorDataCache.get(egress, 'WEB', NEVER)).resolves.toBe('issued 1');
    clock.nowMs = 30_001;
    await expect(visitorDataCache.get(egress, 'WEB', NEVER)).resolves.toBe('issued 2');
    await expect(visitorDataCache.get(egress, 'WEB', NEVER)).resolves.toBe('issued 2');
  });

  it('one who leaves does not take it from those who stay', async () => {
    const [egress] = egresses(1);
    if (!egress) throw new Error('no exit');
    let issue: (value: string) => void = () => undefined;
    const { visitorDataCache } = deskAt(() => new Promise((resolve) => (issue = resolve)));
    const leaving = new AbortController();
    const abandoned = visitorDataCache.get(egress, 'WEB', leaving.signal);
    const stays = visitorDataCache.get(egress, 'WEB', NEVER);
    leaving.abort(new Error('left'));
    await expect(abandoned).rejects.toThrow('left');
    issue('issued');
    await expect(stays).resolves.toBe('issued');
  });
});
