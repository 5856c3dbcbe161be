import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module.js';
import { CacheSize } from '../../cache/cache-size.js';
import { HealthModule } from '../health/health.module.js';
import { QuotaModule } from '../../quota/quota.module.js';
import { TranscriptsModule } from '../../transcripts/transcripts.module.js';
import { CallMetrics } from './call-metrics.js';
import { MetricsController } from './metrics.controller.js';
import { MetricsRegistry } from './metrics-registry.js';
import { RequestMetrics } from './request-metrics.js';
import { ServiceMetrics } from './service-metrics.js';
import { UpstreamMetrics } from './upstream-metrics.js';

/** `/metrics`. Needs an `UpstreamTraffic`, which the application provides. */
@Module({
  imports: [AuthModule, HealthModule, QuotaModule, TranscriptsModule],
  controllers: [MetricsController],
  providers: [MetricsRegistry, RequestMetrics, UpstreamMetrics, CallMetrics, ServiceMetrics, CacheSize],
})
export class MetricsModule {}
