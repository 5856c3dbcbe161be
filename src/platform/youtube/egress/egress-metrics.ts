import { Gauge, type Counter, type Registry } from 'prom-client';
import { createCounter } from '../../../observability/metrics-registry.js';
import type { EgressState } from '../../egress-states.js';
import { ATTEMPT_ENDS, EGRESS_USES } from './attempt.js';

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
