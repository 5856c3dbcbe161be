import { Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Logger } from 'pino';
import { CacheModule } from '../../cache/cache.module.js';
import { ConfigModule } from '../../config/config.module.js';
import { Environment, readEnvironment } from '../../config/environment.js';
import { DatabaseModule } from '../../database/database.module.js';
import { HttpModule } from '../../http/http.module.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { createLogger, NestLogger } from '../../observability/logging/logger.js';
import { redactorFor } from '../../observability/logging/redaction.js';
import { ApiKey } from '../../organizations/api-key.js';
import { Organization } from '../../organizations/organization.entity.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { UsageReports } from '../../quota/usage-report.js';
import { AdminModule } from '../admin.module.js';
import { AdminKeysController } from '../http/keys.controller.js';
import { AdminOperationsController } from '../http/operations.controller.js';
import { AdminOrganizationsController } from '../http/organizations.controller.js';

/** The operations of `/admin`, which commands run on the database without a service. Nothing listens. */
@Module({})
class CommandModule {}

const OPERATIONS = {
  organizations: AdminOrganizationsController,
  keys: AdminKeysController,
  work: AdminOperationsController,
  jobs: JobsService,
  reports: UsageReports,
  /** To find an organization by its name. */
  named: OrganizationsService,
  environment: Environment,
};

export type Operations = { [Name in keyof typeof OPERATIONS]: InstanceType<(typeof OPERATIONS)[Name]> };

/**
 * The environment of a command, and its log on standard error: by default warnings only, because the result says what it does.
 *
 * @throws EnvironmentError
 */
export function commandSetup(): { environment: Environment; logger: Logger } {
  const environment = readEnvironment();
  const level = environment.LOG_LEVEL === 'info' ? 'warn' : environment.LOG_LEVEL;
  return { environment, logger: createLogger(level, process.stderr, redactorFor(environment)) };
}

/**
 * Opens the database, runs operations, and closes it, also when they fail.
 *
 * @param platform the module of the `VideoPlatform`
 * @throws EnvironmentError, the error of a database that cannot be opened, and the errors of the work
 */
export async function withOperations<T>(
  platform: Type<unknown>,
  work: (operations: Operations) => Promise<T>,
): Promise<T> {
  const { environment, logger } = commandSetup();
  // Jobs, and the keys of the identity provider, are work of the service.
  Object.assign(environment, { JOB_CONCURRENCY: 0, OIDC_ISSUER: undefined });
  const module = {
    module: CommandModule,
    imports: [
      ConfigModule.forRoot(environment),
      DatabaseModule.forRoot({ as: 'command', entities: [Organization, ApiKey] }),
      CacheModule.forRoot(environment),
      HttpModule,
      { module: platform, global: true },
      AdminModule,
    ],
  };
  // With `abortOnError` Nest would exit the process with a stack trace.
  const options = { logger: new NestLogger(logger), abortOnError: false };
  const context = (await NestFactory.createApplicationContext(module, options)).enableShutdownHooks();
  try {
    const found = Object.entries(OPERATIONS).map(([name, type]) => [name, context.get<unknown>(type)]);
    return await work(Object.fromEntries(found) as Operations);
  } finally {
    await context.close();
  }
}
