import { setTimeout as sleep } from 'node:timers/promises';
import { ClusterSession } from './cluster-session.js';
import { isDatabaseAway } from './database-away.js';
import {
  DataDirectoryInUseError,
  dataDirectoryFault,
  EmbeddedPostgresError,
  faultLine,
} from './embedded-postgres-error.js';
import { directoryArgument, prepareCluster, type PostgresCluster } from './postgres-cluster.js';
import { findFreePort, findPostmaster, launchPostmaster, stopPostmaster, type Launch } from './postmaster.js';

const START_SECONDS_MAX = 60;
const POLL_MS = 30;
const PASSING_FAULT_PAUSE_MS = 300;
/** How long a killed service's lock can outlive it, until PostgreSQL notices. */
const SERVICE_LOCK_WAIT_MS = 2_000;
const REJOIN_PAUSE_MS = 1_000;

/** Processes that start and stop together can fail in more ways than are listed below; a real fault comes again. */
const FAULTS_MAX = 3;

/** Why a PostgreSQL ended that can start a moment later. */
const PASSING_FAULT =
  /lock file .* already exists|shared memory block .* still in use|could not create any TCP\/IP sockets/;

export interface EmbeddedPostgresOptions {
  /** One service at a time, and any number of commands beside it. */
  readonly as: 'service' | 'command';
  /** PostgreSQL settings as `name=value`; they count only when this call starts it. */
  readonly settings?: readonly string[];
}

export interface EmbeddedPostgres {
  /** Of the application's own database, with the password. */
  readonly url: string;
  /** Ends this use; the last user stops PostgreSQL. */
  close(): Promise<void>;
}

/**
 * Opens the PostgreSQL that is kept in `dataDir`: creates it when there is none, starts it when it does not run, and
 * joins it when it does, be it another process's or what a killed one left running. It listens on 127.0.0.1 only.
 *
 * @throws DataDirectoryInUseError when another service runs on the directory
 * @throws EmbeddedPostgresError when the directory or PostgreSQL cannot be used
 */
export async function openEmbeddedPostgres(
  dataDir: string,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const use = new ClusterUse(await prepareCluster(dataDir), options);
  return use.open();
}

/** One process's use of the cluster, kept up until it is closed. */
class ClusterUse {
  private readonly closing = new AbortController();
  private session: ClusterSession | undefined;
  private rejoining: Promise<void> | undefined;

  constructor(
    private readonly cluster: PostgresCluster,
    private readonly options: EmbeddedPostgresOptions,
  ) {}

  async open(): Promise<EmbeddedPostgres> {
    try {
      const session = await this.enter();
      const url = await session.openDatabase(this.cluster.password);
      this.keepUp(session);
      return { url, close: () => this.close() };
    } catch (error) {
      await this.leave().catch(() => undefined);
      throw dataDirectoryFault(this.cluster.dataDir, error);
    }
  }

  private async close(): Promise<void> {
    if (this.closing.signal.aborted) return;
    this.closing.abort();
    await this.rejoining;
    await this.leave();
  }

  private async enter(port?: number): Promise<ClusterSession> {
    this.session = await joinOrStart(this.cluster, this.options.settings ?? [], this.closing.signal, port);
    if (this.options.as === 'service') await this.becomeService(this.session);
    return this.session;
  }

  private async becomeService(session: ClusterSession): Promise<void> {
    const giveUpAt = performance.now() + SERVICE_LOCK_WAIT_MS;
    while (!(await session.becomeService())) {
      if (performance.now() > giveUpAt) throw new DataDirectoryInUseError(this.cluster.dataDir);
      await sleep(POLL_MS);
    }
  }

  private async leave(): Promise<void> {
    const { session } = this;
    this.session = undefined;
    if (session === undefined) return;
    try {
      if (await session.leave()) await stopPostmaster(this.cluster);
    } catch (error) {
      // PostgreSQL was gone before: there is nothing to leave.
      if (!isDatabaseAway(error)) throw error;
    } finally {
      await session.end();
    }
  }

  /**
   * With the connection the membership ends, and another user could stop the cluster under this one. When PostgreSQL
   * itself has died it is started again, on the same port, so that the connection pool recovers by itself.
   */
  private keepUp(session: ClusterSession): void {
    void session.ended.then(() => {
      if (!this.closing.signal.aborted) this.rejoining = this.rejoin(session.port);
    });
  }

  private async rejoin(port: number): Promise<void> {
    while (!this.closing.signal.aborted) {
      try {
        this.keepUp(await this.enter(port));
        return;
      } catch {
        await this.leave().catch(() => undefined);
        // The queries of the application tell that the database is away; this only tries again.
        await sleep(REJOIN_PAUSE_MS, undefined, { signal: this.closing.signal, ref: false }).catch(() => undefined);
      }
    }
  }
}

async function joinOrStart(
  cluster: PostgresCluster,
  settings: readonly string[],
  signal: AbortSignal,
  preferredPort: number | undefined,
): Promise<ClusterSession> {
  const giveUpAt = performance.now() + START_SECONDS_MAX * 1_000;
  let port = preferredPort ?? (await findFreePort());
  let launch: Launch | undefined;
  let lastOutput = '';
  let faults = 0;
  while (performance.now() < giveUpAt) {
    signal.throwIfAborted();
    const session = await tryJoin(cluster);
    if (session !== undefined) return session;
    if (launch?.hasEnded() === true) {
      lastOutput = await launch.output();
      if (!PASSING_FAULT.test(lastOutput) && ++faults === FAULTS_MAX) break;
      await sleep(PASSING_FAULT_PAUSE_MS);
      launch = undefined;
      port = await findFreePort();
    }
    if (launch === undefined && (await findPostmaster(cluster)) === undefined) {
      launch = await launchPostmaster(cluster, port, settings);
    }
    await sleep(POLL_MS);
  }
  throw startFault(cluster, lastOutput);
}

/** Undefined when PostgreSQL does not run, is still starting or is about to stop. */
async function tryJoin(cluster: PostgresCluster): Promise<ClusterSession | undefined> {
  const postmaster = await findPostmaster(cluster);
  if (postmaster === undefined) return undefined;
  try {
    return await ClusterSession.join(cluster, postmaster);
  } catch (error) {
    if (isDatabaseAway(error)) return undefined;
    throw error;
  }
}

function startFault(cluster: PostgresCluster, output: string): EmbeddedPostgresError {
  const reason =
    output === ''
      ? `gave no answer within ${START_SECONDS_MAX} seconds`
      : `does not start: ${faultLine(output).replaceAll(directoryArgument(cluster), cluster.directory)}`;
  return new EmbeddedPostgresError(
    `The embedded PostgreSQL in ${cluster.dataDir} ${reason}. Its log: ${cluster.logFile}`,
    new Error(output.slice(-2_000)),
  );
}
