import { describe, expect, it } from '@jest/globals';
import { newContext } from '../../../../test/youtube/egresses.js';
import type { UpstreamResponse } from './upstream-response.js';
import { RetryBudget } from './attempt.js';
import { REAL_RETRY_ENVIRONMENT, withRetries } from './request-pipeline.js';

const OK: UpstreamResponse = { kind: 'ok', media: 'json', body: '{}' };
const SERVER_ERROR: UpstreamResponse = { kind: 'http-error', status: 500, media: 'json' };

async function run(
  answers: readonly UpstreamResponse[],
  { retries = 2, deadlineAtMs = 10_000, random = 1, hasAlternative = false } = {},
) {
  const sleeps: number[] = [];
  let nowMs = 0;
  let attempts = 0;
  const response = await withRetries(
    () => Promise.resolve(answers[Math.min(attempts++, answers.length - 1)] ?? OK),
    new RetryBudget(retries),
    newContext({ deadlineAtMs }),
    hasAlternative,
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
    ['a captcha page', { kind: 'blocked', reason: 'captcha', retryAfterSeconds: null }],
    ['a 403', { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null }],
    ['a request that was not sent', { kind: 'busy', retryAfterSeconds: 1 }],
    ['429 with Retry-After', { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 1 }],
  ])('%s is final', async (_name, final) => {
    await expect(run([final])).resolves.toEqual({ response: final, attempts: 1, sleeps: [] });
  });

  it.each<[string, UpstreamResponse]>([
    ['a timeout', { kind: 'timeout' }],
    ['a broken connection', { kind: 'network', cause: null }],
    ['a page of another server', { kind: 'foreign-page' }],
    ['an error page', { kind: 'http-error', status: 502, media: 'html' }],
  ])('%s is retried through the same egress only when there is no other', async (_name, unreached) => {
    await expect(run([unreached, OK], { hasAlternative: true })).resolves.toMatchObject({
      response: unreached,
      attempts: 1,
    });
    await expect(run([unreached, OK])).resolves.toMatchObject({ response: OK, attempts: 2 });
  });

  it.each<[string, UpstreamResponse]>([
    ['a server error of the platform', SERVER_ERROR],
    ['an answer cut short', { kind: 'unreadable', expected: 'whole JSON' }],
  ])('%s is retried although another egress can be tried', async (_name, failure) => {
    await expect(run([failure, OK], { hasAlternative: true })).resolves.toMatchObject({ response: OK });
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

  it('returns a failure immediately when the wait ends after the deadline', async () => {
    const result = await run([SERVER_ERROR], { deadlineAtMs: 200 });
    expect(result).toEqual({ response: SERVER_ERROR, attempts: 1, sleeps: [] });
  });

  it('rejects with the reason of an abort during the wait', async () => {
    const leaving = new AbortController();
    const context = newContext({ signal: leaving.signal, deadlineAtMs: Infinity });
    const environment = { ...REAL_RETRY_ENVIRONMENT, random: () => 1_000 };
    const running = withRetries(() => Promise.resolve(SERVER_ERROR), new RetryBudget(1), context, false, environment);
    setImmediate(() => leaving.abort(new Error('left')));
    await expect(running).rejects.toThrow('left');
  });
});
