import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ConfigModule } from '../../config/config.module.js';
import { readEnvironment, type Environment } from '../../config/environment.js';
import { DatabaseModule } from '../../database/database.module.js';
import { MIGRATIONS } from '../../database/migrations/all-migrations.js';
import { JobRepository } from '../../jobs/job.repository.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { ApiKey } from '../../organizations/api-key.entity.js';
import { ApiKeysService } from '../../organizations/api-keys.service.js';
import { AuditTrail } from '../../organizations/audit-trail.js';
import { Organization } from '../../organizations/organization.entity.js';
import { OrganizationsModule } from '../../organizations/organizations.module.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { QuotaModule } from '../../quota/quota.module.js';
import { QuotaService } from '../../quota/quota.service.js';
import { UsageReports } from '../../quota/usage-report.js';
import { UsageRetention } from '../../quota/usage-retention.js';
import { CommandLogger } from './command-logger.js';

/** The part of the application that the commands use: the database, organizations, quota and jobs. Nothing listens or runs. */
@Module({})
class CliModule {
  static forRoot(environment: Environment): DynamicModule {
    return {
      module: CliModule,
      imports: [
        ConfigModule.forRoot(environment),
        DatabaseModule.forRoot({ as: 'command', entities: [Organization, ApiKey], migrations: MIGRATIONS }),
        OrganizationsModule,
        QuotaModule,
      ],
      providers: [JobRepository, JobsService],
    };
  }
}

export interface AdminServices {
  organizations: OrganizationsService;
  keys: ApiKeysService;
  quota: QuotaService;
  reports: UsageReports;
  retention: UsageRetention;
  jobs: JobsService;
  audit: AuditTrail;
}

/**
 * Opens the services, runs the work and closes the services, also when the work fails.
 *
 * @throws EnvironmentError, the error of a database that cannot be opened, and the errors of the work
 */
export async function withAdminServices<T>(work: (services: AdminServices) => Promise<T>): Promise<T> {
  const environment = readEnvironment();
  const context = await NestFactory.createApplicationContext(CliModule.forRoot(environment), {
    logger: new CommandLogger(environment.LOG_LEVEL),
    // Otherwise Nest exits the process with a stack trace.
    abortOnError: false,
  });
  context.enableShutdownHooks();
  try {
    return await work({
      organizations: context.get(OrganizationsService),
      keys: context.get(ApiKeysService),
      quota: context.get(QuotaService),
      reports: context.get(UsageReports),
      retention: context.get(UsageRetention),
      jobs: context.get(JobsService),
      audit: context.get(AuditTrail),
    });
  } finally {
    await context.close();
  }
}
