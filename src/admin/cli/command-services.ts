import { randomBytes } from 'node:crypto';
import { Module, type INestApplicationContext, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { BackgroundLoops } from '../../background/background-loops.js';
import { CacheModule } from '../../cache/cache.module.js';
import { ConfigModule } from '../../config/config.module.js';
import { Environment, readEnvironment } from '../../config/environment.js';
import { DatabaseModule } from '../../database/database.module.js';
import { JobWorker } from '../../jobs/job-worker.js';
import { JobEngineModule } from '../../jobs/jobs.module.js';
import { JobsService } from '../../jobs/jobs.service.js';
import { SubscriptionsService } from '../../jobs/subscriptions.service.js';
import { createLogger, NestLogger } from '../../observability/logging/logger.js';
import { redactorFor } from '../../observability/logging/logger.js';
import { ApiKey } from '../../organizations/api-key.js';
import { ApiKeysService } from '../../organizations/api-keys.service.js';
import { AuditTrail } from '../../organizations/audit-trail.js';
import { COMMANDS_ORGANIZATION_ID, Organization } from '../../organizations/organization.entity.js';
import { MONTHLY_LIMIT_MAX } from '../../organizations/limits.js';
import { OrganizationsModule } from '../../organizations/organizations.module.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { TokenClientsService } from '../../organizations/token-clients.service.js';
import { QuotaModule } from '../../quota/quota.module.js';
import { QuotaService, type Payer } from '../../quota/quota.service.js';
import { UsageReports } from '../../quota/usage-report.js';
import { UsageRetention } from '../../quota/usage-retention.js';
import { ChannelUploads } from '../../transcripts/sources/channel-uploads.js';
import { PlaylistSource } from '../../transcripts/sources/playlist-source.js';
import { TranscriptsModule } from '../../transcripts/transcripts.module.js';
import { TranscriptsService } from '../../transcripts/transcripts.service.js';

/** The part of the application that commands use. Nothing listens. */
@Module({})
class CommandModule {}

function servicesOf(context: INestApplicationContext) {
  return {
    environment: context.get(Environment),
    organizations: context.get(OrganizationsService),
    keys: context.get(ApiKeysService),
    clients: context.get(TokenClientsService),
    audit: context.get(AuditTrail),
    quota: context.get(QuotaService),
    reports: context.get(UsageReports),
    retention: context.get(UsageRetention),
    uploads: context.get(ChannelUploads),
    playlists: context.get(PlaylistSource),
    transcripts: context.get(TranscriptsService),
    jobs: context.get(JobsService),
    subscriptions: context.get(SubscriptionsService),
    worker: context.get(JobWorker),
    background: context.get(BackgroundLoops),
    payer: () => commandPayer(context.get(DataSource)),
  };
}

export type CommandServices = ReturnType<typeof servicesOf>;

export interface CommandOptions {
  /** Whether the work ends by itself on a signal, which otherwise closes the services. */
  handlesSignals?: boolean;
}

/**
 * Opens the services, runs the work and closes the services, also when the work fails. They log to standard error, and by
 * default warnings only: what a command does, its result says.
 *
 * @param platform the module of a `VideoPlatform`
 * @throws EnvironmentError, the error of a database that cannot be opened, and the errors of the work
 */
export async function withServices<T>(
  platform: Type<unknown>,
  work: (services: CommandServices) => Promise<T>,
  { handlesSignals = false }: CommandOptions = {},
): Promise<T> {
  const environment = readEnvironment();
  // The jobs of other organizations are work of the service.
  environment.JOB_CONCURRENCY = 0;
  const level = environment.LOG_LEVEL === 'info' ? 'warn' : environment.LOG_LEVEL;
  const logger = new NestLogger(createLogger(level, process.stderr, redactorFor(environment)));
  const module = {
    module: CommandModule,
    imports: [
      ConfigModule.forRoot(environment),
      DatabaseModule.forRoot({ as: 'command', entities: [Organization, ApiKey] }),
      CacheModule.forRoot(environment),
      { module: platform, global: true },
      OrganizationsModule,
      QuotaModule,
      TranscriptsModule,
      JobEngineModule,
    ],
  };
  // With `abortOnError` Nest would exit the process with a stack trace.
  const context = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
  if (!handlesSignals) context.enableShutdownHooks();
  try {
    return await work(servicesOf(context));
  } finally {
    await context.close();
  }
}

/**
 * The organization of the commands `transcripts`, `archive` and `follow`, with a limit that they do not reach. The database requires a
 * key for what is charged: this one cannot be used, because no text has its hash.
 */
async function commandPayer(database: DataSource): Promise<Payer> {
  const [organizationId, keyId] = [COMMANDS_ORGANIZATION_ID, 'key_commands'];
  await database.query(
    `INSERT INTO organizations (id, name, plan, monthly_limit) VALUES ($1, $2, 'pro', $3)
       ON CONFLICT (id) DO UPDATE SET plan = 'pro', monthly_limit = $3, deleted_at = NULL`,
    [organizationId, 'Commands transcripts, archive and follow', MONTHLY_LIMIT_MAX],
  );
  await database.query(
    `INSERT INTO api_keys (id, organization_id, name, prefix, hash, revoked_at) VALUES ($1, $2, 'None', '', $3, clock_now())
       ON CONFLICT (id) DO NOTHING`,
    [keyId, organizationId, randomBytes(32)],
  );
  return { organizationId, keyId, requestId: 'command' };
}
