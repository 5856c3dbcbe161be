import { Inject, Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthCheckAttempt } from '@nestjs/terminus';
import { RedisConnection } from './redis-connection.js';

/**
 * Whether Redis accepts writes; a cache in memory is always up. Not critical: without Redis requests are served from each
 * process's own cache.
 */
@Injectable()
export class CacheHealth {
  readonly name = 'cache';
  readonly critical = false;

  constructor(
    private readonly indicators: HealthIndicatorService,
    @Inject(RedisConnection) private readonly redis: RedisConnection | null,
  ) {}

  check(): HealthCheckAttempt {
    return this.indicators.check(this.name).attempt(async () => this.redis?.checkWritable());
  }
}
