import { Gauge, type Counter, type Registry } from 'prom-client';
import { createCounter } from '../../../observability/metrics-registry.js';
import { ATTEMPT_ENDS, EGRESS_USES } from './attempt.js';
import type { Egress } from './egress.js';

/** What is observed of an egress. Sessions of a gateway are counted as their gateway. */
interface ObservedEgress extends Pick<Egress, 'name' | 'uses'> {
  readonly restsUntilMs: number | null;
}

/** The value of each series, by the value of its second label; null for none. */
type Values = readonly (readonly [label: string, value: number | null])[];

/** Exports the state of the egresses. */
export function exportEgressStates(registry: Registry, members: readonly ObservedEgress[]): void {
  const registers = [registry];
  new Gauge({
    name: 'ct_upstream_exit_resting',
    help: '1 while an egress is skipped because no response arrived through it.',
    labelNames: ['exit'],
    registers,
    collect() {
      for (const { name, restsUntilMs } of members) this.set({ exit: name }, Number(restsUntilMs !== null));
    },
  });
  const gauge = (name: string, help: string, label: string, valuesOf: (uses: Egress['uses']) => Values) =>
    new Gauge({
      ...{ name, help, labelNames: ['exit', label], registers },
      collect() {
        this.reset();
        for (const member of members)
          for (const [of, value] of valuesOf(member.uses))
            if (value !== null) this.set({ exit: member.name, [label]: of }, value);
      },
    });
  const breaker = '1 while an egress is paused because the platform refuses it, until a control is served.';
  gauge('ct_upstream_breaker_open', breaker, 'use', (uses) =>
    EGRESS_USES.map((use) => [use, Number(uses[use].line.paused)]),
  );
  gauge('ct_upstream_pause_seconds', 'Seconds until a control is asked through a refused egress.', 'use', (uses) =>
    EGRESS_USES.map((use) => [use, uses[use].line.pauseRemainingMs / 1000]),
  );
  const pace = 'Requests per minute that an egress may send; absent while there is no limit.';
  gauge('ct_upstream_pace_per_minute', pace, 'kind', ({ video }) =>
    [...video.line.rates].map(([kind, { perMinute }]) => [kind, perMinute]),
  );
  gauge('ct_upstream_pace_queued', 'Channels or videos that wait for their turn at an egress.', 'kind', (uses) =>
    EGRESS_USES.map((use) => [use, uses[use].line.waiting]),
  );
}

/** A counter of the ends of attempts. */
export function countAttempts(
  registry: Registry,
  members: readonly ObservedEgress[],
): Counter<'exit' | 'use' | 'finding'> {
  return createCounter(
    registry,
    'ct_upstream_exit_findings_total',
    'How attempts (one per channel or video and egress) ended for their egress.',
    { exit: members.map(({ name }) => name), use: EGRESS_USES, finding: ATTEMPT_ENDS },
  );
}
