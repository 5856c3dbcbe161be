import { describe, expect, it } from '@jest/globals';
import type { UpstreamResponse } from './upstream-response.js';
import { RetryBudget, withRetries } from './retry.js';

const OK: UpstreamResponse = { kind: 'ok', media: 'json', body: '{}' };
const SERVER_ERROR: UpstreamResponse = { kind: 'http-error', status: 500, media: 'json' };
const tooMany = (retryAfterSeconds: number | null): UpstreamResponse => ({
  kind: 'blocked',
  reason: 'too-many-requests',
  retryAfterSeconds,
});

async function run(answers: readonly UpstreamResponse[], { retries = 2, deadlineAtMs = 10_000, random = 1 } = {}) {
  const sleeps: number[] = [];
  let nowMs = 0;
  let attempts = 0;
  const response = await withRetries(
    () => Promise.resolve(answers[Math.min(attempts++, answers.length - 1)] ?? OK),
    new RetryBudget(retries),
    { signal: new AbortController().signal, deadlineAtMs, fairnessKey: {} },
    {
      random: () => random,
      now: () => nowMs,
      sleep: (ms) => {
        sleeps.push(ms);
        nowMs += ms;
        return Promise.resolve();
      },
    },
  );
  return { response, attempts, sleeps };
}

describe('withRetries', () => {
  it.each<[string, UpstreamResponse]>([
    ['a server error', SERVER_ERROR],
    ['a timeout', { kind: 'timeout' }],
    ['a broken connection', { kind: 'network', cause: null }],
    ['an answer cut short', { kind: 'unreadable', expected: 'whole JSON' }],
    ['an empty answer', { kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null }],
  ])('%s is retried', async (_name, failureResponse) => {
    await expect(run([failureResponse, OK])).resolves.toMatchObject({ response: OK, attempts: 2 });
  });

  it.each<[string, UpstreamResponse]>([
    ['an answer', OK],
    ['400', { kind: 'http-error', status: 400, media: 'json' }],
    ['404', { kind: 'http-error', status: 404, media: 'json' }],
    ['a captcha page', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: 1 }],
    ['a consent page', { kind: 'blocked', reason: 'consent', retryAfterSeconds: null }],
    ['429 without a time', tooMany(null)],
  ])('%s is final', async (_name, final) => {
    await expect(run([final])).resolves.toEqual({ response: final, attempts: 1, sleeps: [] });
  });

  it('returns the last failure when the budget is exhausted', async () => {
    await expect(run([SERVER_ERROR])).resolves.toMatchObject({ response: SERVER_ERROR, attempts: 3 });
    await expect(run([SERVER_ERROR], { retries: 0 })).resolves.toMatchObject({ attempts: 1 });
  });

  it('waits up to 250 ms, then up to 500, 1,000, 2,000, and never more than 4,000', async () => {
    const { sleeps } = await run([SERVER_ERROR], { retries: 6, deadlineAtMs: 60_000 });
    expect(sleeps).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000]);
    expect((await run([SERVER_ERROR], { random: 0 })).sleeps).toEqual([0, 0]);
  });

  it('retries a 429 after its Retry-After when that is before the deadline', async () => {
    const result = await run([tooMany(3), OK], { random: 0 });
    expect(result).toEqual({ response: OK, attempts: 2, sleeps: [3_000] });
  });

  it.each([
    ['a 429', tooMany(11), 10_000],
    ['a server error', SERVER_ERROR, 200],
  ])('returns %s immediately when the wait ends after the deadline', async (_name, failure, deadlineAtMs) => {
    await expect(run([failure], { deadlineAtMs })).resolves.toEqual({ response: failure, attempts: 1, sleeps: [] });
  });

  it('rejects with the reason of an abort during the wait', async () => {
    const leaving = new AbortController();
    const running = withRetries(() => Promise.resolve(tooMany(60)), new RetryBudget(1), {
      ...{ signal: leaving.signal, deadlineAtMs: performance.now() + 3_600_000, fairnessKey: {} },
    });
    setImmediate(() => leaving.abort(new Error('left')));
    await expect(running).rejects.toThrow('left');
  });
});
