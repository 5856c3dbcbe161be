import { Module } from '@nestjs/common';
import { ThrottlerModule } from '@nestjs/throttler';
import { SharedCounts } from '../cache/shared-counts.js';
import { Environment } from '../config/environment.js';
import { MetricsRegistryModule } from '../observability/metrics/metrics-registry.js';
import { OrganizationsModule } from '../organizations/organizations.module.js';
import { RejectionCounts } from '../rate-limit/rejection-counts.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { CallsInFlight } from '../rate-limit/calls-in-flight.js';
import { CallsInFlightGuard } from '../rate-limit/calls-in-flight.guard.js';
import { FailedAuthentications } from './failed-authentications.js';
import { PlanGuard } from './plan.guard.js';
import { RateCounter } from '../rate-limit/rate-counter.js';
import { RateLimitGuard } from '../rate-limit/rate-limit.guard.js';

const RATE_WINDOW_MS = 60_000;

const rateLimit = ThrottlerModule.forRootAsync({
  inject: [Environment, SharedCounts],
  useFactory: ({ RATE_LIMIT_PER_MINUTE: limit }: Environment, shared: SharedCounts) => ({
    // A block would outlast the minute; without one a caller may go on as soon as there is room.
    throttlers: [{ limit, ttl: RATE_WINDOW_MS, blockDuration: 0 }],
    skipIf: () => limit === 0,
    storage: new RateCounter(shared),
  }),
});

const gates = [ApiKeyGuard, PlanGuard, RateLimitGuard, CallsInFlightGuard];
const counts = [RejectionCounts, FailedAuthentications, CallsInFlight];

@Module({
  imports: [MetricsRegistryModule, OrganizationsModule, rateLimit],
  providers: [...gates, ...counts],
  exports: [OrganizationsModule, ...gates, ...counts],
})
export class AuthModule {}
