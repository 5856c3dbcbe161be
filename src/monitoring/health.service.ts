import { Injectable } from '@nestjs/common';
import type { HealthCheckAttempt } from '@nestjs/terminus';
import { CacheHealth } from '../cache/cache.health.js';
import { DatabaseHealth } from '../database/database.module.js';
import { ShutdownState } from '../http/shutdown-state.js';
import type { DependencyDto, ReadyDto } from './health.dto.js';

/** A dependency that takes longer counts as down. */
const CHECK_TIMEOUT_MS = 1_500;

/** The health check of a feature's dependency. */
interface Dependency {
  readonly name: string;
  /** Whether requests fail without it. */
  readonly critical: boolean;
  check(): HealthCheckAttempt;
}

/** Combines the health checks of the features; bounded by the timeout of a check. */
@Injectable()
export class HealthService {
  private readonly dependencies: readonly Dependency[];
  private checking: Promise<Record<string, DependencyDto>> | undefined;

  constructor(
    database: DatabaseHealth,
    cache: CacheHealth,
    private readonly shutdown: ShutdownState,
  ) {
    this.dependencies = [database, cache];
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

  /** Checks all dependencies concurrently. Concurrent callers share the result, because a check uses a connection. */
  checkDependencies(): Promise<Record<string, DependencyDto>> {
    this.checking ??= this.check().finally(() => (this.checking = undefined));
    return this.checking;
  }

  private async check(): Promise<Record<string, DependencyDto>> {
    const results = this.dependencies.map(async (dependency): Promise<[string, DependencyDto]> => {
      const { name, critical } = dependency;
      const result = await dependency.check().withTimeout(CHECK_TIMEOUT_MS);
      // Without the error, which can name hosts: the probes are public.
      return [name, { status: result[name]?.status === 'up' ? 'up' : 'down', critical }];
    });
    return Object.fromEntries(await Promise.all(results));
  }
}
