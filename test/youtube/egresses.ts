import { Registry } from 'prom-client';
import { Environment } from '../../src/config/environment.js';
import type { ReadingContext } from '../../src/platform/video-platform.js';
import { Attempt, type UseName, RetryBudget } from '../../src/platform/youtube/egress/attempt.js';
import type { ControlEnd, Egress } from '../../src/platform/youtube/egress/egress.js';
import { EgressPool } from '../../src/platform/youtube/egress/egress-pool.js';
import { type Controls, Experiment } from '../../src/platform/youtube/egress/experiment.js';
import { RequestQueue } from '../../src/platform/youtube/egress/request-queue.js';
import type { RequestScope } from '../../src/platform/youtube/egress/request-pipeline.js';
import { UpstreamMetrics } from '../../src/platform/youtube/upstream-metrics.js';

interface PoolChoices {
  registry?: Registry;
  now?: (() => number) | undefined;
  queue?: RequestQueue | undefined;
  experiment?: Experiment;
}

/** A pool of proxies, by their URLs or their number (where nothing listens), or of the direct egress when there are none. */
export function newPool(
  proxies: number | readonly string[] = 0,
  { registry = new Registry(), now, queue, experiment = newExperiment() }: PoolChoices = {},
): EgressPool {
  const url = (index: number) => `http://user:secret@127.0.0.1:${index + 1}`;
  const urls = typeof proxies === 'number' ? Array.from({ length: proxies }, (_, index) => url(index)) : proxies;
  const environment = Object.assign(new Environment(), urls.length > 0 && { UPSTREAM_PROXY_URL: urls });
  return new EgressPool(
    environment,
    registry,
    queue ?? new RequestQueue(environment.upstreamSlots, now),
    experiment,
    now,
  );
}

/** An experiment whose controls end so, and the egresses and kinds that they were asked for. */
export function newExperiment(
  ask: ControlEnd | (() => Promise<ControlEnd>) = 'served',
): Experiment & { asked: string[] } {
  const asked: string[] = [];
  const controls: Controls = {
    clients: () => ['ANDROID', 'IOS'],
    ids: () => ['known', 'other'],
    ask: (_id, _client, kind, { egress }) => {
      asked.push(`${egress.name} ${kind}`);
      return typeof ask === 'string' ? Promise.resolve(ask) : ask();
    },
    rest: () => undefined,
  };
  const metrics = new UpstreamMetrics(new Registry(), new RequestQueue(1));
  return Object.assign(new Experiment({ video: controls, channel: controls }, metrics), { asked });
}

/** A caller with a deadline of a minute. */
export function newContext(context: Partial<ReadingContext> = {}): ReadingContext {
  const deadlineAtMs = performance.now() + 60_000;
  return { signal: new AbortController().signal, deadlineAtMs, organizationId: '', fairnessKey: {}, ...context };
}

/** The egress that is used next. */
export function nextEgress(pool = newPool(), use: UseName = 'video'): Egress {
  const taken = pool.take(use, [], newContext());
  if (!taken) throw new Error('There is no egress.');
  return taken.egress;
}

/** An attempt without retries, by a caller with a deadline of a minute. */
export function newScope(
  context: Partial<ReadingContext> = {},
  egress = nextEgress(),
  subject = 'a video',
): RequestScope {
  const attempt = new Attempt(subject);
  const budget = new RetryBudget(0);
  return { egress, attempt, context: newContext(context), budget, hasAlternative: false, attempts: 1 };
}
