import { Counter, Gauge, type Registry } from 'prom-client';
import {
  ATTEMPT_VERDICTS,
  EGRESS_USES,
  PACED_KINDS,
  type AttemptVerdict,
  type Egress,
  type EgressUse,
} from './egress.js';

/** What is observed of an egress. */
interface ObservedEgress extends Pick<Egress, 'name' | 'controls'> {
  readonly coolingDownUntilMs: number;
  pauseRemainingMs(use: EgressUse): number;
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
      help: '1 while an egress is paused or probed because the platform refuses it.',
      labelNames: ['exit', 'use'],
      registers,
      collect() {
        for (const { name, controls } of members) {
          const { lists, player, captions } = controls;
          this.set({ exit: name, use: 'channel' }, Number(lists.refused));
          this.set({ exit: name, use: 'video' }, Number(player.refused || captions.refused));
        }
      },
    });
    new Gauge({
      name: 'ct_upstream_pause_seconds',
      help: 'Seconds until a refused egress is probed.',
      labelNames: ['exit', 'use'],
      registers,
      collect() {
        for (const member of members)
          for (const use of EGRESS_USES) this.set({ exit: member.name, use }, member.pauseRemainingMs(use) / 1000);
      },
    });
    new Gauge({
      name: 'ct_upstream_pace_per_minute',
      help: 'Requests per minute that an egress may send; absent while there is no limit.',
      labelNames: ['exit', 'kind'],
      registers,
      collect() {
        for (const { name, controls } of members)
          for (const kind of PACED_KINDS) {
            const { perMinute } = controls[kind];
            if (perMinute === null) this.remove({ exit: name, kind });
            else this.set({ exit: name, kind }, perMinute);
          }
      },
    });
    new Gauge({
      name: 'ct_upstream_pace_queued',
      help: 'Requests that wait for their turn at an egress.',
      labelNames: ['exit', 'kind'],
      registers,
      collect() {
        for (const { name, controls } of members)
          for (const kind of PACED_KINDS) this.set({ exit: name, kind }, controls[kind].queued);
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
