import { type DynamicModule, Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { BackgroundModule } from '../background/background-loops.js';
import { JobsModule } from '../jobs/jobs.module.js';
import { MetricsRegistryModule } from '../observability/metrics-registry.js';
import { WebhookDeliverer } from './webhook-deliverer.js';
import { WebhookHousekeeping } from './webhook-housekeeping.js';
import { WebhookSecrets } from './webhook-secrets.js';
import { WebhookResolver } from './webhook-url.js';
import { WebhookSender } from './webhook-sender.js';
import { WebhooksController } from './webhooks.controller.js';
import { WebhooksService } from './webhooks.service.js';

/**
 * Webhooks of organizations. Another feature sends an event by calling the database function `webhook_enqueue` in the
 * transaction that makes it true.
 */
@Module({
  imports: [AuthModule, BackgroundModule, JobsModule, MetricsRegistryModule],
  controllers: [WebhooksController],
  providers: [WebhookDeliverer, WebhookResolver, WebhookSecrets, WebhookSender, WebhooksService],
})
export class WebhooksModule {
  /** @param as the housekeeping, which is of all organizations, is work of the service alone */
  static with(as: 'service' | 'command'): DynamicModule {
    return { module: WebhooksModule, providers: as === 'service' ? [WebhookHousekeeping] : [] };
  }
}
