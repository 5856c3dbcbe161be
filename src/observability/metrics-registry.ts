import { Module } from '@nestjs/common';
import { Counter, Gauge, Registry, type LabelValues } from 'prom-client';

/**
 * Provides the prom-client `Registry` of this application. A feature imports this module and registers its own metrics.
 * prom-client's default registry is not used: several applications run in one test process.
 */
@Module({
  providers: [{ provide: Registry, useFactory: () => new Registry() }],
  exports: [Registry],
})
export class MetricsRegistryModule {}

/**
 * A counter whose series start at 0: `rate()` misses an increment that starts a series.
 *
 * @param labels the values of each label; there is a series for each combination
 */
export function createCounter<Label extends string = never>(
  registry: Registry,
  name: string,
  help: string,
  labels?: Readonly<Record<Label, readonly string[]>>,
): Counter<Label> {
  const values = Object.entries<readonly string[]>(labels ?? {}) as [Label, readonly string[]][];
  const labelNames = values.map(([label]) => label);
  const counter = new Counter({ name, help, labelNames, registers: [registry] });
  let series: LabelValues<Label>[] = [{}];
  for (const [label, each] of values)
    series = series.flatMap((labelled) => each.map((value) => ({ ...labelled, [label]: value })));
  for (const labelled of series) counter.inc(labelled, 0);
  return counter;
}

/** A gauge without labels, read at each scrape. */
export function createGauge(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}
