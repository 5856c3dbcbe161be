import type { INestApplication } from '@nestjs/common';
import { ChannelTranscriptsClient } from '@channel-transcripts/client';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { Authentication } from '../../auth/authentication.js';
import { BackgroundLoops } from '../../background/background-loops.js';
import type { Environment } from '../../config/environment.js';
import { SCOPES, type Caller } from '../../domain/caller.js';
import { JobWorker } from '../../jobs/job-worker.js';
import { JobsService, type AwaitedVideo } from '../../jobs/jobs.service.js';
import { generateKey } from '../../organizations/api-key.js';
import { MONTHLY_LIMIT_MAX } from '../../organizations/limits.js';
import { commandSetup } from './operations.js';

const SLICES_AT_ONCE = 4;

/** Creates the whole service with the role of a command, which does not listen yet. */
export type CreateService = (environment: Environment, logger: Logger) => Promise<INestApplication>;

/** The service that a command runs in its process. */
export interface LocalService {
  client: ChannelTranscriptsClient;
  /** Starts to run the jobs and subscriptions of the commands. Those of other organizations are work of the service. */
  startWork(): void;
  /** Stops that. What the running slices have fetched is stored. */
  stopWork(): Promise<void>;
  /** Up to `count` videos of a job that have failed and are tried again. */
  awaitedVideos(jobId: string, count: number): Promise<AwaitedVideo[]>;
}

/**
 * Runs the service on a free port of this machine, does some work with a client of it, and closes it. It serves nobody else: it
 * accepts one random key, which is in the memory of this process alone.
 *
 * @param accept the media type of the responses
 * @param handlesSignals whether the work ends by itself on a signal, which otherwise closes the service
 * @throws EnvironmentError, the error of a database that cannot be opened, and the errors of the work
 */
export async function withLocalService<T>(
  create: CreateService,
  work: (service: LocalService) => Promise<T>,
  { accept = 'application/json', handlesSignals = false } = {},
): Promise<T> {
  const { environment, logger } = commandSetup();
  const app = await create(Object.assign(environment, forOneCaller()), logger);
  if (!handlesSignals) app.enableShutdownHooks();
  try {
    const key = generateKey();
    const caller = await commandCaller(app.get(DataSource));
    app.get(Authentication).acceptOnly(key, caller);
    await app.listen(environment.PORT, environment.HOST);
    return await work({
      client: new ChannelTranscriptsClient({
        ...{ baseUrl: await app.getUrl(), apiKey: key },
        headers: () => ({ Accept: accept }),
      }),
      startWork: () => app.get(JobWorker).start(SLICES_AT_ONCE, caller.organization.id),
      stopWork: () => app.get(BackgroundLoops).stop(),
      awaitedVideos: (jobId, count) => app.get(JobsService).awaitedVideos(jobId, count),
    });
  } finally {
    await app.close();
  }
}

/** What differs from a service for others. What it does not serve to the command is turned off. */
function forOneCaller(): Partial<Environment> {
  return {
    ...{ HOST: '127.0.0.1', PORT: 0, CORS_ORIGINS: undefined, MESSAGE_TRANSPORT: undefined },
    ...{ ADMIN_TOKEN: undefined, OIDC_ISSUER: undefined, OIDC_ADMIN_CLAIM: undefined, METRICS_TOKEN: generateKey() },
    ...{ RATE_LIMIT_PER_MINUTE: 0, JOB_CONCURRENCY: 0, WEBHOOK_SECRET_KEY: undefined },
  };
}

/**
 * The organization that these commands call as: an ordinary one, with a limit that they do not reach unless it is changed. The
 * database requires a key for what is charged: this one cannot be used, because no text has its hash.
 */
async function commandCaller(database: DataSource): Promise<Caller> {
  const [organization] = await database.query<[Caller['organization']]>(
    `INSERT INTO organizations (id, name, plan, monthly_limit)
       VALUES ('org_commands', 'Commands transcripts, archive and follow', 'pro', $1)
       ON CONFLICT (id) DO UPDATE SET deleted_at = NULL RETURNING id, name, plan`,
    [MONTHLY_LIMIT_MAX],
  );
  await database.query(
    `INSERT INTO api_keys (id, organization_id, name, prefix, hash, revoked_at)
       VALUES ('key_commands', 'org_commands', 'None', '', sha256(gen_random_uuid()::text::bytea), clock_now())
       ON CONFLICT (id) DO NOTHING`,
  );
  return { keyId: 'key_commands', kind: 'key', scopes: SCOPES, organization };
}
