import { Inject, Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { z } from 'zod';
import { IdentityProvider } from '../auth/oidc/identity-provider.js';
import { RedisConnection } from '../cache/redis-connection.js';
import { checkDatabase } from '../database/database.module.js';
import { withTimeout } from '../domain/waiting.js';
import { ShutdownState } from '../http/server/connections.js';

export const LiveDto = z.object({ status: z.literal('ok').describe('Always `ok`.') }).meta({ id: 'Live' });
export type LiveDto = z.infer<typeof LiveDto>;

const Dependency = z
  .object({
    status: z
      .enum(['up', 'down'])
      .describe(
        'Whether the dependency is available: the database responds and can write, the cache accepts writes, messages can arrive over ' +
          'NATS, the keys of the identity provider could be read at the last attempt.',
      ),
    critical: z.boolean().describe('Whether requests fail while the dependency is down.'),
  })
  .meta({ id: 'Dependency' });
type DependencyDto = z.infer<typeof Dependency>;

export const ReadyDto = z
  .object({
    status: z
      .enum(['ok', 'degraded', 'unavailable'])
      .describe(
        '`ok` when every dependency is up, `degraded` when a non-critical one is down, `unavailable` when a critical one is ' +
          'down or the service is shutting down.',
      ),
    stopping: z.boolean().describe('Whether the service is shutting down.'),
    dependencies: z.record(z.string(), Dependency).describe('The dependencies by name.'),
  })
  .meta({ id: 'Ready' });
export type ReadyDto = z.infer<typeof ReadyDto>;

/** The example of the OpenAPI document. */
export const READY: ReadyDto = {
  status: 'ok',
  stopping: false,
  dependencies: { database: { status: 'up', critical: true }, cache: { status: 'up', critical: false } },
};

/** A dependency that takes longer counts as down. */
const CHECK_TIMEOUT_MS = 1_500;
/** From the start of a check to the next. Everybody may call the probes, and a check makes PostgreSQL write a file. */
const CHECK_PAUSE_MS = 1_000;

/** Whether the process can serve requests, for the probes and the metrics. */
@Injectable()
export class HealthService {
  private last: Promise<ReadyDto['dependencies']> | undefined;
  private isRunning = false;
  private startedAtMs = -Infinity;

  /** @param redis null for a cache in memory, which is always up */
  constructor(
    private readonly database: DataSource,
    @Inject(RedisConnection) private readonly redis: RedisConnection | null,
    private readonly shutdown: ShutdownState,
    @Inject(IdentityProvider) private readonly identityProvider: IdentityProvider | null,
    registry: Registry,
  ) {
    const up: Gauge = new Gauge({
      name: 'ct_dependency_up',
      help: 'Whether a dependency is available, checked as by /health/ready.',
      labelNames: ['dependency', 'critical'],
      registers: [registry],
      collect: async () => {
        for (const [dependency, { status, critical }] of Object.entries(await this.checkDependencies()))
          up.set({ dependency, critical: String(critical) }, Number(status === 'up'));
      },
    });
  }

  /** Whether requests can be served, with each dependency by name. */
  async readiness(): Promise<ReadyDto> {
    const dependencies = await this.checkDependencies();
    const { stopping } = this.shutdown;
    const down = Object.values(dependencies).filter(({ status }) => status === 'down');
    const unavailable = stopping || down.some(({ critical }) => critical);
    const status = unavailable ? 'unavailable' : down.length > 0 ? 'degraded' : 'ok';
    return { status, stopping, dependencies };
  }

  /** Checks all dependencies concurrently, at most once a second: callers in between get the result of the last check. */
  checkDependencies(): Promise<ReadyDto['dependencies']> {
    const isRecent = this.isRunning || performance.now() - this.startedAtMs < CHECK_PAUSE_MS;
    if (this.last && isRecent) return this.last;
    [this.isRunning, this.startedAtMs] = [true, performance.now()];
    this.last = this.check().finally(() => (this.isRunning = false));
    return this.last;
  }

  private async check(): Promise<ReadyDto['dependencies']> {
    const [database, cache] = await Promise.all([
      statusOf(checkDatabase(this.database)),
      statusOf(this.redis?.checkWritable()),
    ]);
    const broker = this.shutdown.servers.find(({ isConnected }) => isConnected);
    const identityProvider = this.identityProvider?.isAvailable();
    // Without the cache requests are served from each process's own, without the database no key can be verified. Without NATS
    // calls over HTTP are served, and without the identity provider those with API keys.
    return {
      database: { status: database, critical: true },
      cache: { status: cache, critical: false },
      ...(broker && { messages: reported(broker.isConnected?.()) }),
      ...(identityProvider !== undefined && { identityProvider: reported(identityProvider) }),
    };
  }
}

const reported = (isUp = false): DependencyDto => ({ status: isUp ? 'up' : 'down', critical: false });

/** The probes are public, so the error is not reported: it can name hosts. */
async function statusOf(check: Promise<void> | undefined): Promise<DependencyDto['status']> {
  const isUp = Promise.resolve(check).then(
    () => true,
    () => false,
  );
  return (await withTimeout(isUp, CHECK_TIMEOUT_MS)) ? 'up' : 'down';
}
