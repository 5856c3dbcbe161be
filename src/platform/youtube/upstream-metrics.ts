import { Injectable } from '@nestjs/common';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { createCounter, createGauge } from '../../observability/metrics-registry.js';
import type { EgressState } from '../egress-states.js';
import { ATTEMPT_ENDS, EGRESS_USES } from './egress/attempt.js';
import { RequestQueue } from './egress/request-queue.js';

/** Seconds; the default timeout of a request is 10. */
const BUCKETS_SECONDS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

const BLOCKED = 'blocked:';
/** Dropped before it was sent: its egress was blocked meanwhile, or its pace is too slow. Not a block of its own. */
const NOT_SENT = new Set(['blocked:exit-shut', 'busy']);
/** Playability results that are blocks although the response is well-formed. */
const BLOCKING_PLAYABILITY = new Set(['bot-check', 'session-refused', 'other-video']);

/** One completed request to the platform. All labels come from small, closed sets. */
interface CompletedRequest {
  /** `player`, `uploads`, `captions`, … */
  kind: string;
  /** The InnerTube client that the request was sent as. */
  client: string;
  /** `direct`, `proxy-1`, …; never an address. */
  egress: string;
  /** `ok`, `blocked:captcha`, `timeout`, `http-5xx`, `aborted`, … */
  outcome: string;
  /** From the start of the request (after queueing) to the last byte of its response. */
  seconds: number;
}

/** Metrics of the requests to the platform and of what their responses contain. */
@Injectable()
export class UpstreamMetrics {
  private readonly requests: Counter<'kind' | 'client' | 'exit' | 'outcome'>;
  private readonly seconds: Histogram<'kind'>;
  private readonly blocks: Counter<'reason'>;
  private readonly notices: Counter<'kind' | 'subject' | 'outcome'>;

  constructor(registry: Registry, queue: RequestQueue) {
    const registers = [registry];
    this.requests = new Counter({
      name: 'ct_upstream_requests_total',
      help: 'Requests to the platform by kind, InnerTube client, egress and outcome.',
      labelNames: ['kind', 'client', 'exit', 'outcome'],
      registers,
    });
    this.seconds = new Histogram({
      name: 'ct_upstream_request_duration_seconds',
      help: 'Time from the start of a request to the platform to the last byte of its response.',
      // Not by egress: a hundred proxies would have thousands of buckets.
      labelNames: ['kind'],
      buckets: BUCKETS_SECONDS,
      registers,
    });
    this.blocks = new Counter({
      name: 'ct_upstream_blocks_total',
      help: 'Responses by which the platform refused the service, by reason.',
      labelNames: ['reason'],
      registers,
    });
    this.notices = new Counter({
      name: 'ct_upstream_notices_total',
      help: 'Observations about responses of the platform, such as page shapes and playability.',
      labelNames: ['kind', 'subject', 'outcome'],
      registers,
    });
    const running = 'Running requests to the platform.';
    createGauge(registry, 'ct_upstream_requests_in_flight', running, () => queue.running);
    const queued = 'Queued requests to the platform.';
    createGauge(registry, 'ct_upstream_requests_queued', queued, () => queue.queued);
    const slots = 'The most requests to the platform that run at a time.';
    createGauge(registry, 'ct_upstream_requests_in_flight_max', slots, () => queue.slots);
  }

  request({ kind, client, egress, outcome, seconds }: CompletedRequest): void {
    this.requests.inc({ kind, client, exit: egress, outcome });
    if (NOT_SENT.has(outcome)) return;
    this.seconds.observe({ kind }, seconds);
    if (outcome.startsWith(BLOCKED)) this.blocks.inc({ reason: outcome.slice(BLOCKED.length) });
  }

  /** Counts an observation about a response, by its kind, its subject (such as the InnerTube client) and its outcome. */
  notice(kind: string, subject: string, outcome: string): void {
    this.notices.inc({ kind, subject, outcome });
    if (kind === 'playability' && BLOCKING_PLAYABILITY.has(outcome)) this.blocks.inc({ reason: outcome });
  }
}

/** The value of each series of an egress, by the value of its second label; null for none. */
type Values = readonly (readonly [label: string, value: number | null])[];

/** Exports the state of the egresses. Sessions of a gateway are counted as their gateway. */
export function exportEgressStates(registry: Registry, states: () => readonly EgressState[]): void {
  const gauge = (name: string, help: string, label: string | null, valuesOf: (state: EgressState) => Values) =>
    new Gauge({
      ...{ name, help, labelNames: label === null ? ['exit'] : ['exit', label], registers: [registry] },
      collect() {
        this.reset();
        for (const state of states())
          for (const [of, value] of valuesOf(state))
            if (value !== null) this.set({ exit: state.name, ...(label !== null && { [label]: of }) }, value);
      },
    });
  const resting = '1 while an egress is skipped because no response arrived through it.';
  gauge('ct_upstream_exit_resting', resting, null, (state) => [['', Number(state.resting)]]);
  const breaker = '1 while an egress is paused because the platform refuses it, until a control is served.';
  gauge('ct_upstream_breaker_open', breaker, 'use', ({ uses }) =>
    uses.map(({ use, refusedKind }) => [use, Number(refusedKind !== null)]),
  );
  gauge('ct_upstream_pause_seconds', 'Seconds until a control is asked through a refused egress.', 'use', ({ uses }) =>
    uses.map(({ use, pauseSeconds }) => [use, pauseSeconds ?? 0]),
  );
  const pace = 'Requests per minute that an egress may send; absent while there is no limit.';
  gauge('ct_upstream_pace_per_minute', pace, 'kind', ({ uses }) =>
    uses.flatMap((use) => use.pace.map(({ kind, perMinute }) => [kind, perMinute] as const)),
  );
  gauge('ct_upstream_pace_queued', 'Channels or videos that wait for their turn at an egress.', 'kind', ({ uses }) =>
    uses.map(({ use, waiting }) => [use, waiting]),
  );
}

/** A counter of the ends of attempts. @param exits the names of the egresses */
export function countAttempts(registry: Registry, exits: readonly string[]): Counter<'exit' | 'use' | 'finding'> {
  return createCounter(
    registry,
    'ct_upstream_exit_findings_total',
    'How attempts (one per channel or video and egress) ended for their egress.',
    { exit: exits, use: EGRESS_USES, finding: ATTEMPT_ENDS },
  );
}
