import { setTimeout as sleep } from 'node:timers/promises';
import { Socket } from 'node:net';
import { ClusterSession } from './cluster-session.js';
import { isConnectionFailure } from '../database-errors.js';
import {
  DataDirectoryInUseError,
  dataDirectoryFault,
  EmbeddedPostgresError,
  faultLine,
} from './embedded-postgres-error.js';
import { directoryArgument, prepareCluster, type PostgresCluster } from './postgres-cluster.js';
import {
  findPostmaster,
  isSocketDirectory,
  launchPostmaster,
  stopPostmaster,
  type Launch,
  type Listener,
} from './postmaster.js';
import { chooseListener, isTrusted, removeSocketDirectory } from './socket-directory.js';

const START_SECONDS_MAX = 60;
const POLL_MS = 30;
const PASSING_FAULT_PAUSE_MS = 300;
const REJOIN_PAUSE_MS = 1_000;

/** Processes that start and stop concurrently can fail in ways that are not listed below; a permanent fault repeats. */
const FAULTS_MAX = 3;

/** Faults that a later start does not have. */
const PASSING_FAULT =
  /lock file .* already exists|shared memory block .* still in use|could not create any TCP\/IP sockets/;

/** The file system of the data directory does not support sockets, as some that are shared with a host. */
const SOCKET_FAULT = /could not create any Unix-domain sockets/;

/** Waits that tests shorten. */
export interface EmbeddedPostgresTimes {
  /** How long PostgreSQL can take to release the lock of a killed service. */
  readonly serviceLockWaitMs: number;
  /** How long to wait until the other users of an earlier version's PostgreSQL, which listens on a port, disconnect. */
  readonly earlierVersionWaitMs: number;
}

const TIMES: EmbeddedPostgresTimes = { serviceLockWaitMs: 2_000, earlierVersionWaitMs: 2_000 };

export interface EmbeddedPostgresOptions {
  /** One service at a time, and any number of commands. */
  readonly as: 'service' | 'command';
  /** PostgreSQL settings as `name=value`; applied only when this call starts PostgreSQL. */
  readonly settings?: readonly string[];
  readonly times?: Partial<EmbeddedPostgresTimes>;
}

export interface EmbeddedPostgres {
  /** URL of the application's database, with the password of a role without privileges beyond it. */
  readonly url: string;
  /** Creates a socket whose `connect` uses PostgreSQL's current address, which changes when a restart listens elsewhere. */
  readonly createSocket: () => Socket;
  /** Ends this use; the last user stops PostgreSQL. */
  close(): Promise<void>;
}

/**
 * Opens the PostgreSQL cluster in `dataDir`: creates it if it does not exist, starts PostgreSQL if it does not run, and
 * connects to one that runs, including one that a killed process started. It listens on a Unix socket that only its owner
 * can access.
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

/** One process's use of the cluster; reconnects until it is closed. */
class ClusterUse {
  private readonly closing = new AbortController();
  private session: ClusterSession | undefined;
  private listener: Listener | undefined;
  private rejoining: Promise<void> | undefined;
  private readonly times: EmbeddedPostgresTimes;

  constructor(
    private readonly cluster: PostgresCluster,
    private readonly options: EmbeddedPostgresOptions,
  ) {
    this.times = { ...TIMES, ...options.times };
  }

  async open(): Promise<EmbeddedPostgres> {
    try {
      const session = await this.enter();
      this.monitor(session);
      return {
        url: session.databaseUrl(this.cluster),
        createSocket: () => new FollowingSocket(() => this.listener),
        close: () => this.close(),
      };
    } catch (error) {
      await this.disconnect().catch(() => undefined);
      throw dataDirectoryFault(this.cluster.dataDir, error);
    }
  }

  private async close(): Promise<void> {
    if (this.closing.signal.aborted) return;
    this.closing.abort();
    await this.rejoining;
    await this.disconnect();
  }

  private async enter(): Promise<ClusterSession> {
    const { settings = [] } = this.options;
    this.session = await joinOrStart(this.cluster, settings, this.times.earlierVersionWaitMs, this.closing.signal);
    this.listener = this.session.listener;
    if (this.options.as === 'service') await this.becomeService(this.session);
    return this.session;
  }

  private async becomeService(session: ClusterSession): Promise<void> {
    const giveUpAt = performance.now() + this.times.serviceLockWaitMs;
    while (!(await session.becomeService())) {
      if (performance.now() > giveUpAt) throw new DataDirectoryInUseError(this.cluster.dataDir);
      await sleep(POLL_MS);
    }
  }

  private async disconnect(): Promise<void> {
    const { session } = this;
    this.session = undefined;
    if (session === undefined) return;
    try {
      if (await session.disconnect()) {
        await stopPostmaster(this.cluster);
        await removeSocketDirectory(this.cluster, session.listener);
      }
    } catch (error) {
      // PostgreSQL had already ended.
      if (!isConnectionFailure(error)) throw error;
    } finally {
      await session.end();
    }
  }

  /**
   * Rejoins when the connection ends: without it the registration is lost, and another user could stop the cluster. If
   * PostgreSQL itself ended, it is restarted, and the connection pool reaches it through `createSocket`.
   */
  private monitor(session: ClusterSession): void {
    void session.ended.then(() => {
      if (!this.closing.signal.aborted) this.rejoining = this.rejoin();
    });
  }

  private async rejoin(): Promise<void> {
    while (!this.closing.signal.aborted) {
      try {
        this.monitor(await this.enter());
        return;
      } catch {
        await this.disconnect().catch(() => undefined);
        // Not logged: the application's queries fail and report the unavailable database.
        await sleep(REJOIN_PAUSE_MS, undefined, { signal: this.closing.signal, ref: false }).catch(() => undefined);
      }
    }
  }
}

/** Connects to the current address of PostgreSQL and ignores the given one. */
class FollowingSocket extends Socket {
  constructor(private readonly current: () => Listener | undefined) {
    super();
  }

  override connect(): this {
    const listener = this.current();
    if (listener === undefined) return this.destroy(new Error('The embedded PostgreSQL is not running.'));
    const { host, port } = listener;
    return isSocketDirectory(host) ? super.connect(`${host}/.s.PGSQL.${port}`) : super.connect(port, host);
  }
}

async function joinOrStart(
  cluster: PostgresCluster,
  settings: readonly string[],
  earlierVersionWaitMs: number,
  signal: AbortSignal,
): Promise<ClusterSession> {
  const startedAt = performance.now();
  const giveUpAt = startedAt + START_SECONDS_MAX * 1_000;
  const chosen: Listener[] = [];
  let apart = false;
  let launch: Launch | undefined;
  let lastOutput = '';
  let faults = 0;
  while (performance.now() < giveUpAt) {
    signal.throwIfAborted();
    const session = await tryJoin(cluster);
    if (session !== undefined) {
      const isEarlierVersion = process.platform !== 'win32' && !isSocketDirectory(session.listener.host);
      if (!isEarlierVersion || performance.now() > startedAt + earlierVersionWaitMs) {
        // Of two processes that started PostgreSQL together, one created a directory that is not used.
        const unused = chosen.filter(({ host }) => host !== session.listener.host);
        for (const listener of unused) await removeSocketDirectory(cluster, listener);
        return session;
      }
      if (await session.disconnect()) await stopPostmaster(cluster);
      await session.end();
    }
    if (launch?.hasEnded() === true) {
      lastOutput = await launch.output();
      if (!PASSING_FAULT.test(lastOutput) && ++faults === FAULTS_MAX) break;
      apart ||= SOCKET_FAULT.test(lastOutput);
      await sleep(PASSING_FAULT_PAUSE_MS);
      launch = undefined;
    }
    if (launch === undefined && (await findPostmaster(cluster)) === undefined) {
      const listener = await chooseListener(cluster, apart);
      chosen.push(listener);
      launch = await launchPostmaster(cluster, listener, settings);
    }
    await sleep(POLL_MS);
  }
  throw startFault(cluster, lastOutput);
}

/** Undefined when PostgreSQL does not run, is still starting or is about to stop. */
async function tryJoin(cluster: PostgresCluster): Promise<ClusterSession | undefined> {
  const postmaster = await findPostmaster(cluster);
  const listener = postmaster?.listener;
  if (listener === undefined || !(await isTrusted(cluster, listener))) return undefined;
  try {
    return await ClusterSession.join(cluster, listener);
  } catch (error) {
    if (isConnectionFailure(error)) return undefined;
    throw error;
  }
}

function startFault(cluster: PostgresCluster, output: string): EmbeddedPostgresError {
  const reason =
    output === ''
      ? `did not respond within ${START_SECONDS_MAX} seconds`
      : `does not start: ${faultLine(output).replaceAll(directoryArgument(cluster), cluster.directory)}`;
  return new EmbeddedPostgresError(
    `The embedded PostgreSQL in ${cluster.dataDir} ${reason}. Its log: ${cluster.logFile}`,
    new Error(output.slice(-2_000)),
  );
}
