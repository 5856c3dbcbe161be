import { Registry } from 'prom-client';
import { Environment } from '../../src/config/environment.js';
import type { ReadingContext } from '../../src/platform/video-platform.js';
import type { Egress } from '../../src/platform/youtube/egress/egress.js';
import { EgressPool } from '../../src/platform/youtube/egress/egress-pool.js';
import { FairLimiter } from '../../src/platform/youtube/egress/fair-limiter.js';
import type { RequestScope } from '../../src/platform/youtube/egress/request-pipeline.js';
import { RetryBudget } from '../../src/platform/youtube/egress/retry.js';

/** A pool of proxies, by their URLs or their number (where nothing listens), or of the direct egress when there are none. */
export function newPool(
  proxies: number | readonly string[] = 0,
  registry = new Registry(),
  now?: () => number,
): EgressPool {
  const url = (index: number) => `http://user:secret@127.0.0.1:${index + 1}`;
  const urls = typeof proxies === 'number' ? Array.from({ length: proxies }, (_, index) => url(index)) : proxies;
  const environment = Object.assign(new Environment(), urls.length > 0 && { UPSTREAM_PROXY_URL: urls });
  return new EgressPool(environment, registry, new FairLimiter(2), now);
}

/** The egress that is used next. */
export function nextEgress(pool = newPool()): Egress {
  const taken = pool.take('video');
  if (!taken) throw new Error('There is no egress.');
  return taken.egress;
}

/** An attempt without retries, by a caller with a deadline of a minute. */
export function newScope(context: Partial<ReadingContext> = {}, egress = nextEgress()): RequestScope {
  const deadlineAtMs = performance.now() + 60_000;
  const caller = { signal: new AbortController().signal, deadlineAtMs, fairnessKey: {}, ...context };
  return { egress, attempt: { subject: 'a video' }, context: caller, budget: new RetryBudget(0) };
}
