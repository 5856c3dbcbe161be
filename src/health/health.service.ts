import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { RedisStore } from '../cache/redis-store.js';
import { ShutdownState } from '../http/shutdown-state.js';
import type { DependencySchema, ReadySchema } from './health.schema.js';

/** A dependency that takes longer than this counts as away. */
const CHECK_TIMEOUT_MS = 1_500;

/** Asks each dependency whether it answers. */
@Injectable()
export class HealthService {
  constructor(
    private readonly dataSource: DataSource,
    @Inject(CACHE_MANAGER) private readonly cache: Cache,
    private readonly shutdown: ShutdownState,
  ) {}

  async readiness(): Promise<ReadySchema> {
    const [database, cache] = await Promise.all([
      check(true, () => this.dataSource.query('select 1')),
      check(false, () => this.pingCache()),
    ]);
    const { stopping } = this.shutdown;
    const status = stopping || database.status === 'down' ? 'unavailable' : cache.status === 'down' ? 'degraded' : 'ok';
    return { status, stopping, dependencies: { database, cache } };
  }

  private async pingCache(): Promise<void> {
    for (const { store } of this.cache.stores) if (store instanceof RedisStore) await store.ping();
  }
}

async function check(critical: boolean, ask: () => Promise<unknown>): Promise<DependencySchema> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'down'>((resolve) => {
    timer = setTimeout(() => resolve('down'), CHECK_TIMEOUT_MS);
  });
  const answer = ask().then(
    () => 'up' as const,
    () => 'down' as const,
  );
  const status = await Promise.race([answer, late]);
  clearTimeout(timer);
  return { status, critical };
}
