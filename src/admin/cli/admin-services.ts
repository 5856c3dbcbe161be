import { Module, type INestApplicationContext, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ConfigModule } from '../../config/config.module.js';
import { readEnvironment, type Environment } from '../../config/environment.js';
import { DatabaseModule } from '../../database/database.module.js';
import { MIGRATIONS } from '../../database/migrations/all-migrations.js';
import { JobRepository } from '../../jobs/job.repository.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { createLogger, NestLogger } from '../../observability/logging/logger.js';
import { redactorFor } from '../../observability/logging/redaction.js';
import { ApiKey } from '../../organizations/api-key.js';
import { ApiKeysService } from '../../organizations/api-keys.service.js';
import { AuditTrail } from '../../organizations/audit-trail.js';
import { Organization } from '../../organizations/organization.entity.js';
import { OrganizationsModule } from '../../organizations/organizations.module.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { QuotaModule } from '../../quota/quota.module.js';
import { QuotaService } from '../../quota/quota.service.js';
import { UsageReports } from '../../quota/usage-report.js';
import { UsageRetention } from '../../quota/usage-retention.js';

/** The part of the application that a command uses. Nothing listens. */
@Module({})
class CommandModule {}

function servicesOf(context: INestApplicationContext) {
  return {
    organizations: context.get(OrganizationsService),
    keys: context.get(ApiKeysService),
    quota: context.get(QuotaService),
    reports: context.get(UsageReports),
    retention: context.get(UsageRetention),
    jobs: context.get(JobsService),
    audit: context.get(AuditTrail),
  };
}

export type AdminServices = ReturnType<typeof servicesOf>;

/**
 * Creates the part of the application that a command uses, with the database. It logs to standard error, and by default
 * warnings only: what a command does, its result says.
 *
 * @throws the error of a database that cannot be opened
 */
export function createCommandContext(
  environment: Environment,
  { imports, providers = [] }: Required<Pick<ModuleMetadata, 'imports'>> & Pick<ModuleMetadata, 'providers'>,
): Promise<INestApplicationContext> {
  const database = DatabaseModule.forRoot({ as: 'command', entities: [Organization, ApiKey], migrations: MIGRATIONS });
  const module = {
    module: CommandModule,
    imports: [ConfigModule.forRoot(environment), database, ...imports],
    providers,
  };
  const level = environment.LOG_LEVEL === 'info' ? 'warn' : environment.LOG_LEVEL;
  const logger = new NestLogger(createLogger(level, process.stderr, redactorFor(environment)));
  // With `abortOnError` Nest would exit the process with a stack trace.
  return NestFactory.createApplicationContext(module, { logger, abortOnError: false });
}

/**
 * Opens the services, runs the work and closes the services, also when the work fails.
 *
 * @throws EnvironmentError, the error of a database that cannot be opened, and the errors of the work
 */
export async function withAdminServices<T>(work: (services: AdminServices) => Promise<T>): Promise<T> {
  const context = await createCommandContext(readEnvironment(), {
    imports: [OrganizationsModule, QuotaModule],
    providers: [JobRepository, JobsService],
  });
  context.enableShutdownHooks();
  try {
    return await work(servicesOf(context));
  } finally {
    await context.close();
  }
}
