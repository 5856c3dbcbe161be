import { Injectable, Module, type BeforeApplicationShutdown } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { BackgroundLoop, type LoopMetrics, type Round } from './background-loop.js';

/** The loops of this process, which stop together. */
@Injectable()
export class BackgroundLoops implements BeforeApplicationShutdown {
  private readonly stops: (() => Promise<unknown>)[] = [];
  private readonly metrics: LoopMetrics;

  constructor(registry: Registry) {
    const options = { labelNames: ['loop'] as const, registers: [registry] };
    this.metrics = {
      failures: new Counter({
        name: 'ct_background_failures_total',
        help: 'Rounds of background work that failed.',
        ...options,
      }),
      lastSuccess: new Gauge({
        name: 'ct_background_last_success_timestamp_seconds',
        help: 'When a round of background work last succeeded, or when its loop started.',
        ...options,
      }),
    };
  }

  /**
   * A loop, which its owner starts. It stops with the process.
   *
   * @param name the label of its metrics and logs
   * @param pauseMs between two rounds
   * @param afterEnd waits for what the rounds have left running, for a limited time
   */
  create(name: string, pauseMs: number, round: Round, afterEnd?: () => Promise<unknown>): BackgroundLoop {
    const loop = new BackgroundLoop(name, pauseMs, round, this.metrics);
    this.stops.push(() => loop.stop().then(afterEnd));
    return loop;
  }

  /** Stops all loops, and waits for their rounds. */
  async stop(): Promise<void> {
    await Promise.all(this.stops.map((stop) => stop()));
  }

  /** For an application that is closed without `shutDown`. */
  beforeApplicationShutdown(): Promise<void> {
    return this.stop();
  }
}

@Module({ imports: [MetricsRegistryModule], providers: [BackgroundLoops], exports: [BackgroundLoops] })
export class BackgroundModule {}
