import { NestFactory } from '@nestjs/core';
import { readEnvironment } from '../../config/environment.js';
import { ApiKeysService } from '../../organizations/api-keys.service.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { QuotaService } from '../../quota/quota.service.js';
import { UsageRetention } from '../../quota/usage-retention.js';
import { CliModule } from './cli.module.js';
import { CommandLogger } from './command-logger.js';

export interface AdminServices {
  organizations: OrganizationsService;
  keys: ApiKeysService;
  quota: QuotaService;
  retention: UsageRetention;
}

/**
 * Opens the services, does the work and closes them again, whether or not the work failed.
 *
 * @throws EnvironmentError, what the database throws when it cannot be opened, and what the work throws
 */
export async function withAdminServices(work: (services: AdminServices) => Promise<void>): Promise<void> {
  const environment = readEnvironment();
  const context = await NestFactory.createApplicationContext(CliModule.forRoot(environment), {
    logger: new CommandLogger(environment.LOG_LEVEL),
    // Otherwise the framework ends the process itself, with a stack trace.
    abortOnError: false,
  });
  context.enableShutdownHooks();
  try {
    await work({
      organizations: context.get(OrganizationsService),
      keys: context.get(ApiKeysService),
      quota: context.get(QuotaService),
      retention: context.get(UsageRetention),
    });
  } finally {
    await context.close();
  }
}
