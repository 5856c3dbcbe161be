import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Environment } from '../config/environment.js';
import { KeyRateLimit } from './key-rate-limit.js';

afterEach(() => {
  jest.restoreAllMocks();
});

describe('the limit per minute without Redis', () => {
  it('ends within a minute also when the wall clock is set back by an hour', async () => {
    const rate = new KeyRateLimit(Object.assign(new Environment(), { RATE_LIMIT_PER_MINUTE: 1 }), null);
    await rate.count('key');
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now - 3_600_000);
    expect(await rate.count('key')).toEqual({ granted: false, used: 2, resetSeconds: 60 });
  });
});
