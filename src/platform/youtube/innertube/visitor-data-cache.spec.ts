import { describe, expect, it } from '@jest/globals';
import { newPool, nextEgress } from '../../../../test/youtube/egresses.js';
import { countryOf, VisitorDataCache, type VisitorExchange } from './visitor-data-cache.js';

const NEVER = new AbortController().signal;

function cacheWith(issue: () => Promise<string | null>) {
  const clock = { nowMs: 1 };
  let asked = 0;
  const ask = () => {
    asked += 1;
    return issue();
  };
  const visitorData = new VisitorDataCache(ask, () => clock.nowMs);
  const pool = newPool(2);
  const [egress, other] = [nextEgress(pool), nextEgress(pool)];
  const get = (client: 'WEB' | 'ANDROID' = 'WEB', through = egress) => visitorData.get(through, client, NEVER);
  const replace = (sent: string | null, offered: string | null) =>
    visitorData.replace(egress, 'WEB', { sent, offered });
  return { visitorData, egress, other, clock, get, replace, asked: () => asked };
}

/** Issues `issued 1`, `issued 2`, … */
function counting() {
  let issued = 0;
  return () => Promise.resolve(`issued ${(issued += 1)}`);
}

describe('VisitorDataCache', () => {
  it('requests once per client and egress for concurrent callers', async () => {
    const { get, other, asked } = cacheWith(counting());
    await expect(Promise.all([get(), get(), get()])).resolves.toEqual(['issued 1', 'issued 1', 'issued 1']);
    await expect(Promise.all([get('ANDROID'), get('WEB', other)])).resolves.toEqual(['issued 2', 'issued 3']);
    await expect(get()).resolves.toBe('issued 1');
    expect(asked()).toBe(3);
  });

  it('requests new data after a day', async () => {
    const { get, clock } = cacheWith(counting());
    await get();
    clock.nowMs += 24 * 3_600_000 + 1;
    await expect(get()).resolves.toBe('issued 2');
  });

  describe.each<[string, () => Promise<string | null>]>([
    ['nothing', () => Promise.resolve(null)],
    ['an error', () => Promise.reject(new Error('blocked'))],
  ])('when the platform issues %s', (_name, issue) => {
    it('sends none, and requests again only after a pause', async () => {
      const { get, clock, asked } = cacheWith(issue);
      await expect(get()).resolves.toBeNull();
      await get();
      expect(asked()).toBe(1);
      clock.nowMs += 30_001;
      await get();
      expect(asked()).toBe(2);
    });
  });

  describe('after a bot check', () => {
    it('adopts the data of its response at once, for this client of this egress', async () => {
      const { get, other, replace } = cacheWith(counting());
      await Promise.all([get(), get('ANDROID'), get('WEB', other)]);
      expect(replace('issued 1', 'offered')).toBe(true);
      await expect(Promise.all([get(), get('ANDROID'), get('WEB', other)])).resolves.toEqual([
        'offered',
        'issued 2',
        'issued 3',
      ]);
    });

    it.each([
      ['the same data', 'issued 1'],
      ['none', null],
    ])('has nothing new when the response offers %s', async (_case, offered) => {
      const { get, replace, clock } = cacheWith(counting());
      await get();
      expect(replace('issued 1', offered)).toBe(false);
      await expect(get()).resolves.toBe('issued 1');
      clock.nowMs += 30_001;
      await expect(get()).resolves.toBe('issued 2');
    });

    it('of a request in flight uses the data that another one has adopted', async () => {
      const { get, replace } = cacheWith(counting());
      await get();
      expect(replace('issued 1', 'a')).toBe(true);
      expect(replace('issued 1', 'b')).toBe(true);
      await expect(get()).resolves.toBe('a');
    });
  });

  it('an aborted caller does not end the request of the others', async () => {
    let issue: (value: string) => void = () => undefined;
    const { visitorData, egress, get } = cacheWith(() => new Promise((resolve) => (issue = resolve)));
    const leaving = new AbortController();
    const abandoned = visitorData.get(egress, 'WEB', leaving.signal);
    const stays = get();
    leaving.abort(new Error('left'));
    await expect(abandoned).rejects.toThrow('left');
    issue('issued');
    await expect(stays).resolves.toBe('issued');
  });
});

describe('the country of an address', () => {
  const data = (...bytes: (number | string)[]) =>
    Buffer.concat(bytes.map((part) => Buffer.from(typeof part === 'string' ? part : [part]))).toString('base64url');
  const german = data(10, 11, 'abcdefghijk', 40, 1, 50, 10, 10, 2, 'DE', 18, 4, 18, 0, 32, 68);

  it.each<[string, VisitorExchange, string | null]>([
    ['the data that was issued', { sent: null, offered: german }, 'DE'],
    ['the data that was sent', { sent: encodeURIComponent(`${german}==`), offered: null }, 'DE'],
    ['neither', { sent: null, offered: null }, null],
    ['data without one', { sent: null, offered: data(10, 11, 'abcdefghijk', 40, 1) }, null],
  ])('is read from %s', (_, exchange, country) => {
    expect(countryOf(exchange)).toBe(country);
  });
});
