import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Counter, Histogram } from 'prom-client';
import {
  UpstreamTraffic,
  type EgressResult,
  type UpstreamObserver,
  type UpstreamRequest,
} from '../../platform/upstream-traffic.js';
import { MetricsRegistry, type Reading } from './metrics-registry.js';

/** Seconds; the default time limit of a request is 10. */
const BUCKETS_SECONDS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

const BLOCKED = 'blocked:';
/** Not sent after all, because the exit was found to be refused while it waited: no block of its own. */
const NOT_SENT = 'blocked:exit-shut';
/** What tells of a block inside a well-formed answer. */
const BLOCKS_COUNTED = new Set(['playability bot-check', 'playability other-video']);

/** Shows the traffic with the platform: what was asked, how it ended, and how each way out stands. */
@Injectable()
export class UpstreamMetrics implements UpstreamObserver, OnModuleInit {
  private readonly requests: Counter<'kind' | 'client' | 'exit' | 'outcome'>;
  private readonly seconds: Histogram<'kind' | 'exit'>;
  private readonly blocks: Counter<'reason'>;
  private readonly verdicts: Counter<'exit' | 'use' | 'finding'>;
  private readonly notices: Counter<'kind' | 'subject' | 'outcome'>;

  constructor(
    private readonly metrics: MetricsRegistry,
    private readonly traffic: UpstreamTraffic,
  ) {
    const registers = [metrics.registry];
    this.requests = new Counter({
      name: 'ct_upstream_requests_total',
      help: 'Requests to the platform by what was asked, as whom, through which exit, and how it ended.',
      labelNames: ['kind', 'client', 'exit', 'outcome'],
      registers,
    });
    this.seconds = new Histogram({
      name: 'ct_upstream_request_duration_seconds',
      help: 'From the turn of a request to the platform to the last byte of its answer.',
      labelNames: ['kind', 'exit'],
      buckets: BUCKETS_SECONDS,
      registers,
    });
    this.blocks = new Counter({
      name: 'ct_upstream_blocks_total',
      help: 'Answers by which the platform refused the service, by what they were.',
      labelNames: ['reason'],
      registers,
    });
    this.verdicts = new Counter({
      name: 'ct_upstream_exit_findings_total',
      help: 'What each piece of work (a channel, a video) found out about the exit that it went through.',
      labelNames: ['exit', 'use', 'finding'],
      registers,
    });
    this.notices = new Counter({
      name: 'ct_upstream_notices_total',
      help: 'What was noticed about the platform beside how requests ended.',
      labelNames: ['kind', 'subject', 'outcome'],
      registers,
    });
    this.showState();
    traffic.observe(this);
  }

  request({ kind, client, egress, outcome, seconds }: UpstreamRequest): void {
    this.requests.inc({ kind, client, exit: egress, outcome: statusClass(outcome) });
    if (outcome === NOT_SENT) return;
    this.seconds.observe({ kind, exit: egress }, seconds);
    if (outcome.startsWith(BLOCKED)) this.blocks.inc({ reason: outcome.slice(BLOCKED.length) });
  }

  egress({ egress, use, verdict }: EgressResult): void {
    this.verdicts.inc({ exit: egress, use, finding: verdict });
  }

  observed(kind: string, subject: string, outcome: string): void {
    this.notices.inc({ kind, subject, outcome });
    if (BLOCKS_COUNTED.has(`${kind} ${outcome}`)) this.blocks.inc({ reason: outcome });
  }

  /** A series that begins with its first block would hide that block from a rate. */
  onModuleInit(): void {
    const { egresses, verdicts } = this.traffic.state();
    for (const { name, blocked } of egresses) {
      for (const use of Object.keys(blocked)) {
        for (const verdict of verdicts) this.verdicts.inc({ exit: name, use, finding: verdict }, 0);
      }
    }
  }

  private showState(): void {
    const { metrics, traffic } = this;
    const single = (name: string, help: string, read: () => number): void =>
      metrics.readGauge({ name, help }, () => [[{}, read()]]);
    single('ct_upstream_requests_in_flight', 'Requests to the platform under way.', () => traffic.state().inFlight);
    single('ct_upstream_requests_queued', 'Requests that wait for their turn.', () => traffic.state().queued);
    single('ct_upstream_requests_in_flight_max', 'UPSTREAM_CONCURRENCY.', () => traffic.state().inFlightMax);
    metrics.readGauge(
      { name: 'ct_upstream_exit_resting', help: '1 while an exit is passed over.', labelNames: ['exit'] },
      () => traffic.state().egresses.map(({ name, coolingDown }): Reading => [{ exit: name }, Number(coolingDown)]),
    );
    metrics.readGauge(
      {
        name: 'ct_upstream_breaker_open',
        help: '1 while next to nothing is sent through an exit because the platform refuses there.',
        labelNames: ['exit', 'use'],
      },
      () =>
        traffic
          .state()
          .egresses.flatMap(({ name, blocked }) =>
            Object.entries(blocked).map(([use, open]): Reading => [{ exit: name, use }, Number(open)]),
          ),
    );
  }
}

/** Whatever a gateway answers, there are no more labels than there are hundreds. */
function statusClass(outcome: string): string {
  return outcome.replace(/^http-(\d)\d*$/, 'http-$1xx');
}
