import { Registry } from 'prom-client';
import type { ReadingContext } from '../../src/platform/video-platform.js';
import type { Egress } from '../../src/platform/youtube/egress/egress.js';
import { EgressPool } from '../../src/platform/youtube/egress/egress-pool.js';
import type { RequestScope } from '../../src/platform/youtube/egress/request-pipeline.js';
import { RetryBudget } from '../../src/platform/youtube/egress/retry.js';

type Choices = Partial<ConstructorParameters<typeof EgressPool>[0]>;

/** A pool of proxies at ports where nothing listens, or of the direct egress when there are none. */
export function newPool(proxies = 0, choices: Choices = {}): EgressPool {
  const proxyUrls = Array.from({ length: proxies }, (_, index) => `http://user:secret@127.0.0.1:${index + 1}`);
  return new EgressPool({
    ...{ registry: new Registry(), proxyUrls, connectionsMax: 2, connectTimeoutMs: 1_000 },
    ...choices,
  });
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
