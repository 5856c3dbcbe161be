import { Module } from '@nestjs/common';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { QuotaMetrics } from './quota-metrics.js';
import { QuotaService } from './quota.service.js';
import { SettlementRetries } from './settlement-retries.js';
import { UsageReports } from './usage-report.js';
import { UsageRetention } from './usage-retention.js';

@Module({
  imports: [MetricsRegistryModule],
  providers: [QuotaMetrics, QuotaService, SettlementRetries, UsageReports, UsageRetention],
  exports: [QuotaService, UsageReports, UsageRetention],
})
export class QuotaModule {}
