import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { CallsInFlight, CallsInFlightGuard } from './calls-in-flight.js';
import { KeyRateLimit, RateLimitGuard } from './rate-limit.guard.js';
import { RejectionMetrics } from './rejection-metrics.js';

const providers = [RateLimitGuard, KeyRateLimit, CallsInFlightGuard, CallsInFlight, RejectionMetrics];

@Module({ imports: [MetricsRegistryModule], providers, exports: providers })
export class RateLimitModule {}
