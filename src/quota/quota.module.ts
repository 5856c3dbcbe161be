import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { QuotaMetrics } from './quota-metrics.js';
import { QuotaService } from './quota.service.js';
import { UsageRetention } from './usage-retention.js';

@Module({
  imports: [MetricsRegistryModule],
  providers: [QuotaMetrics, QuotaService, UsageRetention],
  exports: [QuotaService, UsageRetention],
})
export class QuotaModule {}
