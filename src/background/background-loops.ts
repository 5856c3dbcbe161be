import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module, type BeforeApplicationShutdown, Logger } from '@nestjs/common';
import { Counter, Gauge, Registry } from 'prom-client';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';

/** The longest pause after failures. */
const BACK_OFF_MAX_MS = 10_000;

/** What a loop repeats. It resolves to `'again'` when there may be more to do at once. A rejection is logged, and repeated later. */
export type Round = (stop: AbortSignal) => Promise<unknown>;

interface LoopMetrics {
  failures: Counter<'loop'>;
  lastSuccess: Gauge<'loop'>;
}

/** Work that this process repeats until it stops. */
export class BackgroundLoop {
  private readonly logger = new Logger(BackgroundLoop.name);
  private readonly stopping = controllerOfMany();
  /** Aborted to end the pauses, and replaced. */
  private waking = controllerOfMany();
  /** Each round has a signal of its own, so that its listeners do not stay. */
  private readonly rounds = new Set<AbortController>();
  private readonly running: Promise<void>[] = [];
  private isFailing = false;

  /** @param pauseMs between two rounds; tests shorten it */
  constructor(
    private readonly name: string,
    public pauseMs: number,
    private readonly round: Round,
    private readonly metrics: LoopMetrics,
  ) {}

  /** Starts with a round at once. @param count how many rounds run at a time */
  start(count = 1): void {
    this.metrics.failures.inc({ loop: this.name }, 0);
    this.metrics.lastSuccess.setToCurrentTime({ loop: this.name });
    while (this.running.length < count) this.running.push(this.run());
  }

  /** Ends the pauses, except those after failures. A round that runs is followed by another one without a pause. */
  wake(): void {
    this.waking.abort();
    this.waking = controllerOfMany();
  }

  /** Aborts the rounds, and waits for their end. */
  async stop(): Promise<void> {
    this.stopping.abort();
    for (const round of this.rounds) round.abort();
    this.wake();
    await Promise.all(this.running);
  }

  private async run(): Promise<void> {
    const { signal: stopped } = this.stopping;
    let failures = 0;
    while (!stopped.aborted) {
      // Taken before the round, so that a wake during it is not lost.
      const { signal: woken } = this.waking;
      const round = new AbortController();
      this.rounds.add(round);
      try {
        const result = await this.round(round.signal).finally(() => this.rounds.delete(round));
        this.metrics.lastSuccess.setToCurrentTime({ loop: this.name });
        this.isFailing = false;
        failures = 0;
        if (result !== 'again') await pause(this.pauseMs, woken);
      } catch (error) {
        if (stopped.aborted) return;
        this.reportFailure(error);
        await pause(Math.min(BACK_OFF_MAX_MS, this.pauseMs * 2 ** failures++), stopped);
      }
    }
  }

  /** The first failure of an outage is logged. */
  private reportFailure(error: unknown): void {
    const { name: loop } = this;
    this.metrics.failures.inc({ loop });
    if (!this.isFailing) this.logger.warn({ event: 'background_failed', loop, cause: String(error) });
    this.isFailing = true;
  }
}

/** Every round listens to it while it pauses; Node.js would warn from 11 on. */
function controllerOfMany(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

async function pause(durationMs: number, end: AbortSignal): Promise<void> {
  await sleep(durationMs, undefined, { signal: end }).catch(() => undefined);
}

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
