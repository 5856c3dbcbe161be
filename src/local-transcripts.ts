import { randomBytes } from 'node:crypto';
import { DataSource } from 'typeorm';
import { createCommandContext } from './admin/cli/admin-services.js';
import type { RunLocally } from './admin/cli/transcripts-command.js';
import { CacheModule } from './cache/cache.module.js';
import { readEnvironment } from './config/environment.js';
import { JobWorker } from './jobs/job-worker.js';
import { JobEngineModule } from './jobs/jobs.module.js';
import { JobsService } from './jobs/jobs.service.js';
import { YoutubeModule } from './platform/youtube/youtube.module.js';
import type { Payer } from './quota/quota.service.js';
import { ChannelUploads } from './transcripts/sources/channel-uploads.js';
import { PlaylistSource } from './transcripts/sources/playlist-source.js';
import { TranscriptsModule } from './transcripts/transcripts.module.js';
import { TranscriptsService } from './transcripts/transcripts.service.js';

const MONTHLY_LIMIT = 2 ** 31 - 1;

/**
 * Opens the services, runs the work and closes the services, also when the work fails.
 *
 * @throws EnvironmentError, the error of a database that cannot be opened, and the errors of the work
 */
export const withLocalTranscripts: RunLocally = async (work, { runsJobs } = { runsJobs: false }) => {
  const environment = readEnvironment();
  const concurrency = Math.max(1, environment.JOB_CONCURRENCY);
  // The jobs of other organizations are work of the service.
  environment.JOB_CONCURRENCY = 0;
  const context = await createCommandContext(environment, {
    imports: [
      CacheModule.forRoot(environment),
      { module: YoutubeModule, global: true },
      TranscriptsModule,
      JobEngineModule,
    ],
  });
  if (!runsJobs) context.enableShutdownHooks();
  try {
    const payer = await payerOf(context.get(DataSource));
    const worker = context.get(JobWorker);
    if (runsJobs) worker.start(concurrency, payer.organizationId);
    await work({
      payer,
      uploads: context.get(ChannelUploads),
      playlists: context.get(PlaylistSource),
      transcripts: context.get(TranscriptsService),
      jobs: context.get(JobsService),
      worker,
    });
  } finally {
    await context.close();
  }
};

/**
 * The organization of the commands, with a limit that they do not reach. The database requires a key for what is charged:
 * this one cannot be used, because no text has its hash.
 */
async function payerOf(database: DataSource): Promise<Payer> {
  const [organizationId, keyId] = ['org_commands', 'key_commands'];
  await database.query(
    `INSERT INTO organizations (id, name, plan, monthly_limit) VALUES ($1, $2, 'pro', $3)
       ON CONFLICT (id) DO UPDATE SET plan = 'pro', monthly_limit = $3, deleted_at = NULL`,
    [organizationId, 'Commands transcripts and archive', MONTHLY_LIMIT],
  );
  await database.query(
    `INSERT INTO api_keys (id, organization_id, name, prefix, hash, revoked_at) VALUES ($1, $2, 'None', '', $3, now())
       ON CONFLICT (id) DO NOTHING`,
    [keyId, organizationId, randomBytes(32)],
  );
  return { organizationId, keyId, requestId: 'command' };
}
