import { NestFactory } from '@nestjs/core';
import { Registry } from 'prom-client';
import { ConfigModule } from '../../../config/config.module.js';
import { Environment } from '../../../config/environment.js';
import { DomainError } from '../../../domain/errors.js';
import { type ReadingContext, VideoPlatform } from '../../video-platform.js';
import { ExchangeListener } from '../egress/exchange-listener.js';
import { YoutubeModule } from '../youtube.module.js';

/** The whole adapter with a configuration of its own, so that one client or egress can be checked alone. */
export interface CheckedAdapter {
  platform: VideoPlatform;
  /** A caller with the configured deadline from now on. */
  context: () => ReadingContext;
  /** The positive values of a metric with these labels, by the values of the labels in `shown`, such as `VISIONOS ok`. */
  counts: (
    metric: string,
    labels: Readonly<Record<string, string>>,
    ...shown: string[]
  ) => Promise<Map<string, number>>;
}

/** Opens the adapter for the duration of `work`. */
export async function withAdapter<T>(
  environment: Environment,
  changes: Partial<Environment>,
  listener: ExchangeListener | null,
  work: (adapter: CheckedAdapter) => Promise<T>,
): Promise<T> {
  const changed = Object.assign(new Environment(), environment, changes);
  const providers = listener ? [{ provide: ExchangeListener, useValue: listener }] : [];
  const adapter = { module: YoutubeModule, imports: [ConfigModule.forRoot(changed)], providers };
  const app = await NestFactory.createApplicationContext(adapter, { logger: false });
  const registry = app.get<Registry>(Registry);
  const deadlineMs = changed.REQUEST_DEADLINE_SECONDS * 1000;
  try {
    return await work({
      platform: app.get(VideoPlatform),
      context: () => ({
        signal: AbortSignal.timeout(deadlineMs),
        deadlineAtMs: performance.now() + deadlineMs,
        fairnessKey: {},
      }),
      counts: async (metric, labels, ...shown) => {
        const { values } = (await registry.getSingleMetric(metric)?.get()) ?? { values: [] };
        const counts = new Map<string, number>();
        for (const { labels: own, value } of values) {
          if (value <= 0 || Object.entries(labels).some(([name, text]) => own[name] !== text)) continue;
          const key = shown.map((name) => String(own[name])).join(' ');
          counts.set(key, (counts.get(key) ?? 0) + value);
        }
        return counts;
      },
    });
  } finally {
    await app.close();
  }
}

/** A value and how long it took, or the code and description of the failure. */
export type Timed<T> = { milliseconds: number } & ({ value: T } | { code: string; failure: string });

/** Reads and measures; a failure becomes one line, without a stack. */
export async function timed<T>(read: () => Promise<T>): Promise<Timed<T>> {
  const startedAtMs = performance.now();
  const milliseconds = (): number => Math.round(performance.now() - startedAtMs);
  try {
    return { value: await read(), milliseconds: milliseconds() };
  } catch (error) {
    if (error instanceof DomainError) {
      const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
      return { code: error.code, failure: `${error.code}${cause}`, milliseconds: milliseconds() };
    }
    if (!(error instanceof Error && error.name === 'TimeoutError')) throw error;
    const failure = 'upstream_timeout: no response within REQUEST_DEADLINE_SECONDS';
    return { code: 'upstream_timeout', failure, milliseconds: milliseconds() };
  }
}
