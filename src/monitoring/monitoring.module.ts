import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { CacheHealth } from '../cache/cache.health.js';
import { DatabaseHealth } from '../database/database.module.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { HealthController } from './health.controller.js';
import { HealthService } from './health.service.js';
import { MetricsController } from './metrics.controller.js';
import { ServiceMetrics } from './service-metrics.js';

/**
 * The probes and `/metrics`. Each feature registers its metrics in the same registry. The health checks are provided here, so that
 * the commands do not load Terminus.
 */
@Module({
  imports: [TerminusModule, MetricsRegistryModule],
  controllers: [HealthController, MetricsController],
  providers: [DatabaseHealth, CacheHealth, HealthService, ServiceMetrics],
})
export class MonitoringModule {}
