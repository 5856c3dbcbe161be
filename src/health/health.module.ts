import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { HealthController, MetricsController } from './health.controller.js';
import { HealthService } from './health.service.js';

/** The probes and `/metrics`. Each feature registers its metrics in the same registry. */
@Module({
  imports: [AuthModule, MetricsRegistryModule],
  controllers: [HealthController, MetricsController],
  providers: [HealthService],
})
export class HealthModule {}
