import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterEach, beforeEach } from '@jest/globals';
import { until } from '../harness/until.js';

const PROGRAM = join(import.meta.dirname, 'programs', 'use-cluster.mjs');

interface Ending {
  readonly code: number | null;
  readonly errorOutput: string;
}

/** A process that uses the embedded PostgreSQL of a directory. */
export class ClusterUser {
  private errorOutput = '';
  private readonly ended: Promise<Ending>;

  private constructor(private readonly child: ChildProcessWithoutNullStreams) {
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.errorOutput += text));
    this.ended = once(child, 'close').then(() => ({ code: child.exitCode, errorOutput: this.errorOutput }));
  }

  static start(dataDir: string, as: 'service' | 'command' = 'service'): ClusterUser {
    return new ClusterUser(spawn(process.execPath, [PROGRAM, dataDir, as]));
  }

  /** The database's URL, once it is open. */
  async url(): Promise<string> {
    const lines = createInterface(this.child.stdout);
    const first = await Promise.race([once(lines, 'line').then(([line]) => String(line)), this.ended]);
    if (typeof first !== 'string') throw new Error(`The process ended: ${first.errorOutput}`);
    const reported: unknown = JSON.parse(first);
    if (reported instanceof Object && 'url' in reported && typeof reported.url === 'string') return reported.url;
    throw new Error(`No URL in ${first}`);
  }

  /** How it ended by itself. */
  async ending(): Promise<Ending> {
    return this.ended;
  }

  async close(): Promise<Ending> {
    this.child.stdin.end();
    return this.ended;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

/** The process ID in PostgreSQL's lock file; undefined when PostgreSQL has stopped in good order. */
export async function postmasterPid(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : Number(text.split('\n', 1)[0]);
}

/** Puts the files of a cluster that was never started into a data directory, which saves the time of initdb. */
export async function copyTestCluster(dataDir: string): Promise<void> {
  const cluster = process.env['TEST_CLUSTER'];
  // Without it the first start creates the files.
  if (cluster === undefined) return;
  // Including owners and modes, which cp of Node.js does not preserve.
  await promisify(execFile)('cp', ['-a', cluster, join(dataDir, 'postgres')]);
}

/**
 * Gives each test of a block a data directory; stops and removes all that is started there.
 *
 * @param content `cluster` for tests that do not depend on the first start
 */
export function useDataDirectory(content: 'nothing' | 'cluster' = 'nothing'): {
  start: (as?: 'service' | 'command', path?: string) => ClusterUser;
  dataDir: () => string;
} {
  let parent: string;
  let dataDir: string;
  let users: ClusterUser[];

  beforeEach(async () => {
    // Only its owner may enter this directory, which PostgreSQL is not when root runs the tests.
    parent = await mkdtemp(join(process.env['TEST_FOLDER'] ?? tmpdir(), 'embedded-postgres-'));
    dataDir = join(parent, 'data');
    users = [];
    if (content === 'nothing') return;
    await mkdir(dataDir, { mode: 0o711 });
    await copyTestCluster(dataDir);
  });

  afterEach(async () => {
    await Promise.all(users.map((user) => user.close()));
    // Of a user that was killed.
    const pid = await postmasterPid(dataDir);
    if (pid !== undefined) process.kill(pid, 'SIGQUIT');
    await until(async () => (await postmasterPid(dataDir)) === undefined);
    await rm(parent, { recursive: true, force: true, maxRetries: 10 });
  });

  return {
    start: (as, path = dataDir) => {
      const user = ClusterUser.start(path, as);
      users.push(user);
      return user;
    },
    dataDir: () => dataDir,
  };
}
