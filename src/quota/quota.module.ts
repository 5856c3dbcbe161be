import { Module } from '@nestjs/common';
import { QuotaEvents } from './quota-events.js';
import { QuotaService } from './quota.service.js';
import { UsageRetention } from './usage-retention.js';

@Module({
  providers: [QuotaEvents, QuotaService, UsageRetention],
  exports: [QuotaEvents, QuotaService, UsageRetention],
})
export class QuotaModule {}
