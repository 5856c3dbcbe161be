import { describe, expect, it } from '@jest/globals';
import { OptionalBackoff } from './egress.js';
import type { UpstreamResponse } from './upstream-response.js';

const REFUSED: UpstreamResponse = { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 3_600 };
const OK: UpstreamResponse = { kind: 'ok', media: 'xml', body: '<feed/>' };

function backoff() {
  const clock = { nowMs: 0 };
  const optional = new OptionalBackoff(() => clock.nowMs);
  /** The seconds for which the feed is not sent now. */
  const seconds = (kind = 'feed') => {
    const refusal = optional.refusal(kind);
    return refusal === null ? 0 : refusal.retryAfterSeconds;
  };
  return { optional, clock, seconds };
}

describe('the back-off of optional requests', () => {
  it('is a minute after a refusal, then twice as long, up to an hour, and over after an answer', () => {
    const { optional, clock, seconds } = backoff();
    const waits: (number | null)[] = [];
    for (let times = 0; times < 8; times += 1) {
      optional.learn('feed', REFUSED);
      waits.push(seconds());
      clock.nowMs += (seconds() ?? 0) * 1_000;
      expect(seconds()).toBe(0);
    }
    expect(waits).toEqual([60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
    optional.learn('feed', OK);
    optional.learn('feed', REFUSED);
    expect(seconds()).toBe(60);
  });

  it('counts refusals of requests that were sent together once', () => {
    const { optional, clock, seconds } = backoff();
    for (let times = 0; times < 10; times += 1) optional.learn('feed', REFUSED);
    expect(seconds()).toBe(60);
    clock.nowMs += 60_000;
    for (let times = 0; times < 10; times += 1) optional.learn('feed', REFUSED);
    expect(seconds()).toBe(120);
  });

  it('is of one kind of request', () => {
    const { optional, seconds } = backoff();
    optional.learn('feed', { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null });
    expect([seconds(), seconds('shorts')]).toEqual([60, 0]);
  });

  it.each<UpstreamResponse>([
    { kind: 'http-error', status: 404, media: 'html' },
    { kind: 'timeout' },
    { kind: 'blocked', reason: 'empty-body', retryAfterSeconds: null },
  ])('does not begin with %j', (response) => {
    const { optional, seconds } = backoff();
    optional.learn('feed', response);
    expect(seconds()).toBe(0);
  });
});
