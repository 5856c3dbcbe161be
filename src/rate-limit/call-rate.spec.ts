import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Environment } from '../config/environment.js';
import type { Caller } from '../domain/caller.js';
import { Registry } from 'prom-client';
import { CallRate, KEYS_AT_FULL_RATE } from './call-rate.js';
import { RejectionMetrics } from './rejection-metrics.js';

afterEach(() => {
  jest.restoreAllMocks();
});

const caller = (keyId: string, id = 'org_a'): Caller => ({
  keyId,
  ...{ kind: 'key', scopes: ['read'] },
  organization: { id, name: 'A', plan: 'pro' },
});

const rateOf = (limit: number) =>
  new CallRate(
    Object.assign(new Environment(), { RATE_LIMIT_PER_MINUTE: limit }),
    null,
    new RejectionMetrics(new Registry()),
  );

describe('the limits per minute without Redis', () => {
  it('end within a minute also when the wall clock is set back by an hour', async () => {
    const rate = rateOf(1);
    await rate.count(caller('key'));
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now - 3_600_000);
    expect(await rate.count(caller('key'))).toEqual({ scope: 'key', limit: 1, used: 2, resetSeconds: 60 });
  });

  it('are those of the key until less remains for the organization, and of each route apart', async () => {
    const rate = rateOf(2);
    const counts: unknown[] = [];
    for (let key = 0; key < KEYS_AT_FULL_RATE; key += 1)
      for (let call = 0; call < 2; call += 1) counts.push((await rate.count(caller(`key_${key}`)))?.scope);
    // The last key has as much left as all of them.
    expect(new Set(counts)).toEqual(new Set(['key']));
    expect(await rate.count(caller('key_another'))).toMatchObject({ scope: 'organization', limit: 20, used: 21 });
    expect(await rate.count(caller('key_another'), { route: 'jobs' })).toMatchObject({ scope: 'key', used: 1 });
    expect(await rate.count(caller('key_b', 'org_b'))).toMatchObject({ scope: 'key', used: 1 });
  });

  it('count no call for the organization that its key may not make', async () => {
    const rate = rateOf(1);
    for (let call = 0; call < 3 * KEYS_AT_FULL_RATE; call += 1) await rate.count(caller('key_that_repeats'));
    expect(await rate.count(caller('key_other'))).toMatchObject({ scope: 'key', limit: 1, used: 1 });
  });
});
