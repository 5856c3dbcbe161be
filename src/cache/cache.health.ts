import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthCheckAttempt } from '@nestjs/terminus';
import { RedisStore } from './redis-store.js';

/** Whether Redis answers; a cache in memory always does. Without it everything works, and is fetched anew. */
@Injectable()
export class CacheHealth {
  readonly name = 'cache';
  readonly critical = false;

  constructor(
    private readonly indicators: HealthIndicatorService,
    @Inject(CACHE_MANAGER) private readonly cache: Cache,
  ) {}

  check(): HealthCheckAttempt {
    return this.indicators.check(this.name).attempt(() => this.ping());
  }

  private async ping(): Promise<void> {
    for (const { store } of this.cache.stores) if (store instanceof RedisStore) await store.ping();
  }
}
