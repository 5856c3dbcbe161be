import { Counter, Gauge, type Registry } from 'prom-client';
import { ATTEMPT_VERDICTS, EGRESS_USES, type Egress } from './egress.js';

/** What is observed of an egress. Sessions of a gateway are counted as their gateway. */
interface ObservedEgress extends Pick<Egress, 'name' | 'controls'> {
  readonly coolingDownUntilMs: number;
}

/** The value of each series, by the value of its second label; null for none. */
type Values = readonly (readonly [label: string, value: number | null])[];

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
  const gauge = (name: string, help: string, label: string, valuesOf: (controls: Egress['controls']) => Values) =>
    new Gauge({
      ...{ name, help, labelNames: ['exit', label], registers },
      collect() {
        this.reset();
        for (const member of members)
          for (const [of, value] of valuesOf(member.controls))
            if (value !== null) this.set({ exit: member.name, [label]: of }, value);
      },
    });
  const breaker = '1 while an egress is paused or probed because the platform refuses it.';
  gauge('ct_upstream_breaker_open', breaker, 'use', (controls) =>
    EGRESS_USES.map((use) => [use, Number(controls[use].refused)]),
  );
  gauge('ct_upstream_pause_seconds', 'Seconds until a refused egress is probed.', 'use', (controls) =>
    EGRESS_USES.map((use) => [use, controls[use].pauseRemainingMs / 1000]),
  );
  const pace = 'Requests per minute that an egress may send; absent while there is no limit.';
  gauge('ct_upstream_pace_per_minute', pace, 'kind', ({ video }) =>
    [...video.rates].map(([kind, { perMinute }]) => [kind, perMinute]),
  );
  gauge('ct_upstream_pace_queued', 'Requests that wait for their turn at an egress.', 'kind', ({ video }) =>
    [...video.rates.keys()].map((kind) => [kind, video.queued(kind)]),
  );
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
