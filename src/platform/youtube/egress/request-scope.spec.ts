import { describe, expect, it } from '@jest/globals';
import { CircuitBreaker } from './circuit-breaker.js';
import type { Egress } from './egress.js';
import { requestScope } from './request-scope.js';
import { RetryBudget } from './retry.js';

describe('requestScope', () => {
  const context = { signal: new AbortController().signal, deadlineAtMs: Infinity, fairnessKey: {} };
  const egress = { name: 'direct' } as Egress;

  it('attempts at one video share a budget of retries, which a probe does not use', () => {
    const clock = { nowMs: 0 };
    const breaker = new CircuitBreaker(() => clock.nowMs);
    const retries = new RetryBudget(1);
    const scope = () => {
      const admission = breaker.admit();
      if (!admission) throw new Error('The egress is blocked.');
      return requestScope(egress, admission, context, retries);
    };
    const [first, second] = [scope(), scope()];
    expect([first.budget.take(), second.budget.take()]).toEqual([true, false]);
    breaker.refuse({ address: false, retryAfterSeconds: null, by: null });
    clock.nowMs += 30_000;
    expect(scope().budget).not.toBe(retries);
  });
});
