import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module.js';
import { TranscriptsModule } from '../../transcripts/transcripts.module.js';
import { HealthModule } from '../health/health.module.js';
import { MetricsController } from './metrics.controller.js';
import { MetricsRegistryModule } from './metrics-registry.js';
import { RequestMetrics } from './request-metrics.js';
import { ServiceMetrics } from './service-metrics.js';

/** `/metrics`, with the metrics of requests and of the process. Features register their own in the same registry. */
@Module({
  imports: [AuthModule, HealthModule, MetricsRegistryModule, TranscriptsModule],
  controllers: [MetricsController],
  providers: [RequestMetrics, ServiceMetrics],
})
export class MetricsModule {}
