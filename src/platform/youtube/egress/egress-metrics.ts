import { Counter, Gauge, type Registry } from 'prom-client';
import { ATTEMPT_VERDICTS, EGRESS_USES, PACED_KINDS, type Egress, type EgressUse } from './egress.js';
import type { RequestControl } from './request-control.js';

/** What is observed of an egress. Sessions of a gateway are counted as their gateway. */
interface ObservedEgress extends Pick<Egress, 'name' | 'controls'> {
  readonly coolingDownUntilMs: number;
  controlOf(use: EgressUse): RequestControl;
}

/** Exports the state of the egresses. */
export function exportEgressStates(registry: Registry, members: readonly ObservedEgress[], now: () => number): void {
  const registers = [registry];
  new Gauge({
    name: 'ct_upstream_exit_resting',
    help: '1 while an egress cools down and is skipped.',
    labelNames: ['exit'],
    registers,
    collect() {
      for (const { name, coolingDownUntilMs } of members) this.set({ exit: name }, Number(coolingDownUntilMs > now()));
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
        for (const use of EGRESS_USES)
          this.set({ exit: member.name, use }, member.controlOf(use).pauseRemainingMs / 1000);
    },
  });
  new Gauge({
    name: 'ct_upstream_pace_per_minute',
    help: 'Requests per minute that an egress may send; absent while there is no limit.',
    labelNames: ['exit', 'kind'],
    registers,
    collect() {
      this.reset();
      for (const { name, controls } of members)
        for (const kind of PACED_KINDS)
          if (controls[kind].rate.perMinute !== null) this.set({ exit: name, kind }, controls[kind].rate.perMinute);
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
}

/** A counter of the verdicts of attempts. Its series start at 0, because rate() misses an increment that starts a series. */
export function countVerdicts(
  registry: Registry,
  members: readonly ObservedEgress[],
): Counter<'exit' | 'use' | 'finding'> {
  const verdicts = new Counter({
    name: 'ct_upstream_exit_findings_total',
    help: 'Verdicts of attempts (one per channel or video and egress) about their egress.',
    labelNames: ['exit', 'use', 'finding'] as const,
    registers: [registry],
  });
  for (const { name } of members)
    for (const use of EGRESS_USES)
      for (const finding of ATTEMPT_VERDICTS) verdicts.inc({ exit: name, use, finding }, 0);
  return verdicts;
}
