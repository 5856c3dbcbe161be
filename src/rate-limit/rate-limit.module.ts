import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics/metrics-registry.js';
import { CallsInFlight, CallsInFlightGuard } from './calls-in-flight.js';
import { RateCounter } from './rate-counter.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RejectionMetrics } from './rejection-metrics.js';

const providers = [RateLimitGuard, RateCounter, CallsInFlightGuard, CallsInFlight, RejectionMetrics];

@Module({ imports: [MetricsRegistryModule], providers, exports: providers })
export class RateLimitModule {}
