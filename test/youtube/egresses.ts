import { Registry } from 'prom-client';
import { Environment } from '../../src/config/environment.js';
import type { ReadingContext } from '../../src/platform/video-platform.js';
import { Attempt, type EgressUse } from '../../src/platform/youtube/egress/attempt.js';
import type { Egress } from '../../src/platform/youtube/egress/egress.js';
import { type Control, EgressPool } from '../../src/platform/youtube/egress/egress-pool.js';
import { RequestQueue } from '../../src/platform/youtube/egress/request-queue.js';
import type { RequestScope } from '../../src/platform/youtube/egress/request-pipeline.js';
import { RetryBudget } from '../../src/platform/youtube/egress/retry.js';

/** A pool of proxies, by their URLs or their number (where nothing listens), or of the direct egress when there are none. */
export function newPool(
  proxies: number | readonly string[] = 0,
  registry = new Registry(),
  now?: () => number,
  queue?: RequestQueue,
): EgressPool {
  const url = (index: number) => `http://user:secret@127.0.0.1:${index + 1}`;
  const urls = typeof proxies === 'number' ? Array.from({ length: proxies }, (_, index) => url(index)) : proxies;
  const environment = Object.assign(new Environment(), urls.length > 0 && { UPSTREAM_PROXY_URL: urls });
  return new EgressPool(environment, registry, queue ?? new RequestQueue(environment.upstreamSlots, now), now);
}

/** A control that always ends so, and the egresses that it was asked through. */
export function newControl(end: Awaited<ReturnType<Control['ask']>> = 'served'): Control & { asked: string[] } {
  const asked: string[] = [];
  return { asked, ask: ({ name }) => (asked.push(name), Promise.resolve(end)) };
}

/** A caller with a deadline of a minute. */
export function newContext(context: Partial<ReadingContext> = {}): ReadingContext {
  const deadlineAtMs = performance.now() + 60_000;
  return { signal: new AbortController().signal, deadlineAtMs, organizationId: '', fairnessKey: {}, ...context };
}

/** The egress that is used next. */
export function nextEgress(pool = newPool(), use: EgressUse = 'video'): Egress {
  const taken = pool.take(use, [], newContext(), newControl());
  if (!taken) throw new Error('There is no egress.');
  return taken.egress;
}

/** An attempt without retries, by a caller with a deadline of a minute. */
export function newScope(context: Partial<ReadingContext> = {}, egress = nextEgress()): RequestScope {
  const attempt = new Attempt('a video');
  const budget = new RetryBudget(0);
  return { egress, attempt, context: newContext(context), budget, hasAlternative: false, attempts: 1 };
}
