import { Counter, Gauge, type Registry } from 'prom-client';
import type { CircuitBreaker } from './circuit-breaker.js';
import { ATTEMPT_VERDICTS, EGRESS_USES, type AttemptVerdict, type EgressUse } from './egress.js';
import { PACED_KINDS } from './egress-state.js';
import type { RequestPacer } from './request-pacer.js';

/** What is observed of an egress. */
interface ObservedEgress {
  readonly name: string;
  readonly breakers: Readonly<Record<EgressUse, CircuitBreaker>>;
  readonly pacer: RequestPacer;
  readonly coolingDownUntilMs: number;
}

/** Metrics of the egresses. Sessions of a gateway are counted as their gateway. */
export class EgressMetrics {
  private readonly verdicts: Counter<'exit' | 'use' | 'finding'>;

  constructor(registry: Registry, members: readonly ObservedEgress[], now: () => number) {
    const registers = [registry];
    new Gauge({
      name: 'ct_upstream_exit_resting',
      help: '1 while an egress cools down and is skipped.',
      labelNames: ['exit'],
      registers,
      collect() {
        for (const { name, coolingDownUntilMs } of members)
          this.set({ exit: name }, Number(coolingDownUntilMs > now()));
      },
    });
    new Gauge({
      name: 'ct_upstream_breaker_open',
      help: '1 while the breaker of an egress is open because the platform refuses it.',
      labelNames: ['exit', 'use'],
      registers,
      collect() {
        for (const { name, breakers } of members)
          for (const use of EGRESS_USES) this.set({ exit: name, use }, Number(breakers[use].open));
      },
    });
    new Gauge({
      name: 'ct_upstream_pause_seconds',
      help: 'Seconds until a refused egress is probed.',
      labelNames: ['exit', 'use'],
      registers,
      collect() {
        for (const { name, breakers } of members)
          for (const use of EGRESS_USES) this.set({ exit: name, use }, breakers[use].pauseRemainingMs / 1000);
      },
    });
    new Gauge({
      name: 'ct_upstream_pace_per_minute',
      help: 'Requests per minute that an egress may send; absent while there is no limit.',
      labelNames: ['exit', 'kind'],
      registers,
      collect() {
        for (const { name, pacer } of members)
          for (const kind of PACED_KINDS) {
            const perMinute = pacer.perMinute(kind);
            if (perMinute === null) this.remove({ exit: name, kind });
            else this.set({ exit: name, kind }, perMinute);
          }
      },
    });
    new Gauge({
      name: 'ct_upstream_pace_queued',
      help: 'Requests that wait for the pace of an egress.',
      labelNames: ['exit', 'kind'],
      registers,
      collect() {
        for (const { name, pacer } of members)
          for (const kind of PACED_KINDS) this.set({ exit: name, kind }, pacer.queued(kind));
      },
    });
    this.verdicts = new Counter({
      name: 'ct_upstream_exit_findings_total',
      help: 'Verdicts of attempts (one per channel or video and egress) about their egress.',
      labelNames: ['exit', 'use', 'finding'],
      registers,
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const { name } of members)
      for (const use of EGRESS_USES)
        for (const finding of ATTEMPT_VERDICTS) this.verdicts.inc({ exit: name, use, finding }, 0);
  }

  /** Counts the verdict of an attempt. */
  verdict(exit: string, use: EgressUse, finding: AttemptVerdict): void {
    this.verdicts.inc({ exit, use, finding });
  }
}
