import type { INestApplication } from '@nestjs/common';
import { ChannelTranscriptsClient, isChannelTranscriptsError } from '@channel-transcripts/client';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { Agent, fetch as fetchThrough } from 'undici';
import { Authentication } from '../../auth/authentication.js';
import { BackgroundLoops } from '../../background/background-loops.js';
import { Environment, readEnvironment } from '../../config/environment.js';
import { SCOPES, type Caller } from '../../domain/caller.js';
import { JobWorker } from '../../jobs/work/job-worker.js';
import { JobsService, type AwaitedVideo } from '../../jobs/jobs.service.js';
import { CHECK_REQUEST_SECONDS } from '../../jobs/job.js';
import { McpTools } from '../../mcp/mcp-tools.js';
import { createLogger, redactorFor } from '../../observability/logging/logger.js';
import { generateKey } from '../../organizations/api-key.js';
import { MONTHLY_LIMIT_MAX, COMMANDS_ORGANIZATION_ID } from '../../organizations/organization.entity.js';
import { OrganizationsService } from '../../organizations/organizations.service.js';
import { TranscriptCache } from '../../transcripts/cache/transcript-cache.js';
import { UsageReports } from '../../quota/usage-report.js';
import { AdminKeysController } from '../http/keys.controller.js';
import { AdminOperationsController } from '../http/operations.controller.js';
import { AdminOrganizationsController } from '../http/organizations.controller.js';

const SLICES_AT_ONCE = 4;

/** Creates the whole service with the role of a command, which does not listen yet. */
export type CreateService = (environment: Environment, logger: Logger) => Promise<INestApplication>;

/** What a command uses of the service in its process when that does not listen: the operations of `/admin` and their services. */
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

/** The service in the process of a command that calls it. */
export interface LocalService {
  client: ChannelTranscriptsClient;
  /** Starts to run the jobs and subscriptions of the commands. Those of other organizations are work of the service. */
  startWork(): void;
  /** Stops that. What the running slices have fetched is stored. */
  stopWork(): Promise<void>;
  /** The pending videos of a job or a subscription. */
  awaitedVideos(id: string): Promise<AwaitedVideo[]>;
  /** Makes a check of a subscription due at once, and its pending videos, without the pause that other callers have to make. */
  check(subscriptionId: string): Promise<void>;
  /** States which videos are not read, because the command has their files. */
  isElsewhere(isElsewhere: (videoId: string) => boolean): void;
  /** Serves the tools for AI assistants over standard input and output, until the input ends or `stop` aborts. */
  serveMcp(stop: AbortSignal): Promise<void>;
}

/** Accepts one error of a call, which then has no result. */
export function unless(code: string) {
  return (error: unknown): undefined => {
    if (!isChannelTranscriptsError(error) || error.code !== code) throw error;
  };
}

type Take = (body: ReadableStream<Uint8Array>) => Promise<void>;

interface LocalOptions {
  accept?: string;
  take?: Take;
  handlesSignals?: boolean;
}

/** Runs operations without a port. @throws as `withService` */
export function withOperations<T>(create: CreateService, work: (operations: Operations) => Promise<T>): Promise<T> {
  return withService(create, (app) => {
    const found = Object.entries(OPERATIONS).map(([name, type]) => [name, app.get<unknown>(type)]);
    return work(Object.fromEntries(found) as Operations);
  });
}

/**
 * Does some work with a client of the service, on a free port of this machine. It serves nobody else: it accepts one random key,
 * which is in the memory of this process alone.
 *
 * @param accept the media type of the responses
 * @param take gets the body of each successful response as it arrives, instead of the caller of the client
 * @param handlesSignals whether the work ends by itself on a signal
 * @throws as `withService`
 */
export function withLocalService<T>(
  create: CreateService,
  work: (service: LocalService) => Promise<T>,
  { accept = 'application/json', take, handlesSignals = false }: LocalOptions = {},
): Promise<T> {
  const serving = async (app: INestApplication): Promise<T> => {
    const key = generateKey();
    const caller = await commandCaller(app.get(DataSource));
    app.get(Authentication).acceptOnly(key, caller);
    await app.listen(0, '127.0.0.1');
    const agent = new Agent();
    const direct = directFetch(agent);
    const client = new ChannelTranscriptsClient({
      ...{ baseUrl: await app.getUrl(), apiKey: key, retries: 0, fetch: take ? taking(direct, take) : direct },
      headers: () => ({ Accept: accept }),
    });
    try {
      return await work({
        client,
        startWork: () => app.get(JobWorker).start(SLICES_AT_ONCE, caller.organization.id),
        stopWork: () => app.get(BackgroundLoops).stop(),
        awaitedVideos: (id) => app.get(JobsService).awaitedVideos(id),
        check: async (id) => {
          const values = [COMMANDS_ORGANIZATION_ID, id, -CHECK_REQUEST_SECONDS];
          await app.get(DataSource).query('SELECT FROM subscription_check($1, $2, $3)', values);
        },
        isElsewhere: (isElsewhere) => {
          app.get(TranscriptCache).isElsewhere = isElsewhere;
        },
        serveMcp: (stop) => app.get(McpTools).serveStdio(caller, stop),
      });
    } finally {
      await agent.destroy();
    }
  };
  return withService(create, serving, handlesSignals);
}

/**
 * Creates the service in this process, and closes it after the work, also when that fails. It logs to standard error, and by default
 * warnings only: what a command does, its result says.
 *
 * @param handlesSignals otherwise a signal closes the service
 * @throws EnvironmentError, the error of a database that cannot be opened, and the errors of the work
 */
async function withService<T>(
  create: CreateService,
  work: (app: INestApplication) => Promise<T>,
  handlesSignals = false,
): Promise<T> {
  const environment = readEnvironment();
  const level = environment.LOG_LEVEL === 'info' ? 'warn' : environment.LOG_LEVEL;
  const logger = createLogger(level, process.stderr, redactorFor(environment));
  const app = await create(Object.assign(environment, forOneCaller()), logger);
  if (!handlesSignals) app.enableShutdownHooks();
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}

/** That of Node.js sends calls, and the key in them, to a proxy of the environment (`NODE_USE_ENV_PROXY`). */
function directFetch(dispatcher: Agent): typeof fetch {
  // The types of Node.js describe those of another version of undici.
  return ((url: string, init: object) => fetchThrough(url, { ...init, dispatcher })) as unknown as typeof fetch;
}

function taking(send: typeof fetch, take: Take): typeof fetch {
  return async (url, init) => {
    const response = await send(url, init);
    if (!response.ok || !response.body) return response;
    await take(response.body);
    return new Response('', { headers: { 'Content-Type': 'text/plain' } });
  };
}

/** What a service for others has besides: it is turned off, or requires a token that nobody has. */
function forOneCaller(): Partial<Environment> {
  return {
    ...{
      ADMIN_TOKEN: generateKey(),
      METRICS_TOKEN: generateKey(),
      OIDC_ISSUER: undefined,
      OIDC_ADMIN_CLAIM: undefined,
    },
    ...{ CORS_ORIGINS: undefined, MESSAGE_TRANSPORT: undefined, WEBHOOK_SECRET_KEY: undefined },
    ...{ RATE_LIMIT_PER_MINUTE: 0, JOB_CONCURRENCY: 0, SUBSCRIPTIONS_PER_ORGANIZATION: 10_000 },
  };
}

/**
 * The organization that these commands call as: an ordinary one, with a limit that they do not reach unless it is changed. The
 * database requires a key for what is charged: this one cannot be used, because no text has its hash.
 */
async function commandCaller(database: DataSource): Promise<Caller> {
  const [organization] = await database.query<[Caller['organization']]>(
    `INSERT INTO organizations (id, name, plan, monthly_limit)
       VALUES ($1, 'Commands transcripts, archive and follow', 'pro', $2)
       ON CONFLICT (id) DO UPDATE SET deleted_at = NULL RETURNING id, name, plan`,
    [COMMANDS_ORGANIZATION_ID, MONTHLY_LIMIT_MAX],
  );
  await database.query(
    `INSERT INTO api_keys (id, organization_id, name, prefix, hash, revoked_at)
       VALUES ('key_commands', $1, 'None', '', sha256(gen_random_uuid()::text::bytea), clock_now())
       ON CONFLICT (id) DO NOTHING`,
    [COMMANDS_ORGANIZATION_ID],
  );
  return { keyId: 'key_commands', kind: 'key', scopes: SCOPES, organization };
}
