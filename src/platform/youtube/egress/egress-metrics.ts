import { Counter, Gauge, type Registry } from 'prom-client';
import { ATTEMPT_VERDICTS, EGRESS_USES, type Egress, type EgressUse } from './egress.js';
import type { RequestControl } from './request-control.js';

/** What is observed of an egress. Sessions of a gateway are counted as their gateway. */
interface ObservedEgress extends Pick<Egress, 'name' | 'controls'> {
  readonly coolingDownUntilMs: number;
  controlOf(use: EgressUse): RequestControl;
}

/** By use or kind. */
type Values = Readonly<Record<string, number | null>>;

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
  /** A gauge with a series for each egress and each property of its values; null for none. */
  const gauge = (name: string, help: string, label: string, valuesOf: (egress: ObservedEgress) => Values) =>
    new Gauge({
      ...{ name, help, labelNames: ['exit', label], registers },
      collect() {
        this.reset();
        for (const member of members)
          for (const [of, value] of Object.entries(valuesOf(member)))
            if (value !== null) this.set({ exit: member.name, [label]: of }, value);
      },
    });
  const breaker = '1 while an egress is paused or probed because the platform refuses it.';
  gauge('ct_upstream_breaker_open', breaker, 'use', ({ controls: { lists, player, captions } }) => ({
    channel: Number(lists.refused),
    video: Number(player.refused || captions.refused),
  }));
  gauge('ct_upstream_pause_seconds', 'Seconds until a refused egress is probed.', 'use', (member) => ({
    channel: member.controlOf('channel').pauseRemainingMs / 1000,
    video: member.controlOf('video').pauseRemainingMs / 1000,
  }));
  const pace = 'Requests per minute that an egress may send; absent while there is no limit.';
  gauge('ct_upstream_pace_per_minute', pace, 'kind', ({ controls: { player, captions } }) => ({
    player: player.rate.perMinute,
    captions: captions.rate.perMinute,
  }));
  const queued = 'Requests that wait for their turn at an egress.';
  gauge('ct_upstream_pace_queued', queued, 'kind', ({ controls: { player, captions } }) => ({
    player: player.queued,
    captions: captions.queued,
  }));
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
