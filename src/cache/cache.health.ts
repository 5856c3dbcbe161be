import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthCheckAttempt } from '@nestjs/terminus';
import { SharedCache } from './shared-cache.js';

/**
 * Whether Redis can be used: one that answers and refuses writes is down, as nothing is cached in it. A cache in memory
 * is always up. Requests are served without it.
 */
@Injectable()
export class CacheHealth {
  readonly name = 'cache';
  readonly critical = false;

  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly shared: SharedCache,
  ) {}

  check(): HealthCheckAttempt {
    return this.indicators.check(this.name).attempt(() => this.shared.checkWritable());
  }
}
