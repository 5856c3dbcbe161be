import { Injectable } from '@nestjs/common';
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';

/** The labels of a value, and the value. */
export type Reading = readonly [labels: Readonly<Record<string, string>>, value: number];

interface Description {
  name: string;
  help: string;
  labelNames?: readonly string[];
}

/** What is of the process and not of an application in it: prom-client's defaults can be watched once only. */
const ofTheProcess = new Registry();

/** Everything that `/metrics` shows. What is counted elsewhere is read when it is asked for, which costs a call nothing. */
@Injectable()
export class MetricsRegistry {
  readonly registry = new Registry();

  constructor() {
    if (ofTheProcess.getMetricsAsArray().length === 0) collectDefaultMetrics({ register: ofTheProcess });
  }

  /** A counter whose values are kept elsewhere and only ever grow. */
  readCounter(description: Description, read: () => Iterable<Reading>): void {
    const counter: Counter = new Counter({
      ...this.config(description),
      collect: () => {
        counter.reset();
        for (const [labels, value] of read()) counter.inc({ ...labels }, value);
      },
    });
  }

  /** A gauge whose values are kept elsewhere. */
  readGauge(description: Description, read: () => Iterable<Reading> | Promise<Iterable<Reading>>): void {
    const gauge: Gauge = new Gauge({
      ...this.config(description),
      collect: async () => {
        const readings = await read();
        gauge.reset();
        for (const [labels, value] of readings) gauge.set({ ...labels }, value);
      },
    });
  }

  /** All of it in the text format of Prometheus. */
  async text(): Promise<string> {
    const [own, process] = await Promise.all([this.registry.metrics(), ofTheProcess.metrics()]);
    return `${own}\n${process}`;
  }

  private config({ name, help, labelNames = [] }: Description) {
    return { name, help, labelNames: [...labelNames], registers: [this.registry] };
  }
}
