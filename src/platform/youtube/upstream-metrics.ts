import { Injectable } from '@nestjs/common';
import { Counter, Histogram, Registry } from 'prom-client';
import { createGauge } from '../../observability/metrics-registry.js';
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
