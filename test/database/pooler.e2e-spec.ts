import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { migrateDatabase } from '../../src/database/data-source.js';
import { freePort } from '../harness/free-port.js';
import { isInstalled } from '../harness/programs.js';
import { until } from '../harness/until.js';
import { temporaryFolder } from '../process/program.js';
import { createTestDatabase, type TestDatabase } from './test-database.js';

const PROGRAM = 'pgbouncer';
/** Of the tests' server, which other tests use too. */
const LOCKS = `
  SELECT FROM pg_locks WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
/** It refuses to run as root. */
const NOBODY = 65_534;

let database: TestDatabase;
let stop: () => Promise<void>;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(() => stop());
afterAll(() => database.drop());

/** Starts PgBouncer before the database. @returns the URL through it */
async function throughPooler(settings: readonly string[]): Promise<string> {
  const [port, folder, { hostname, port: serverPort, username, password, pathname }] = [
    await freePort(),
    temporaryFolder(),
    new URL(database.url),
  ];
  const name = pathname.slice(1);
  const file = join(folder.path, 'pgbouncer.ini');
  chmodSync(folder.path, 0o755);
  const server = `host=${hostname} port=${serverPort} dbname=${name} user=${username} password=${password}`;
  const own = ['auth_type = any', 'unix_socket_dir =', 'listen_addr = 127.0.0.1', `listen_port = ${port}`];
  writeFileSync(file, ['[databases]', `${name} = ${server}`, '[pgbouncer]', ...own, ...settings].join('\n'));
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const child: ChildProcess = spawn(PROGRAM, [file], { ...user, stdio: ['ignore', 'ignore', 'pipe'] });
  stop = async () => {
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
    folder.remove();
  };
  let output = '';
  await new Promise<void>((resolve, reject) => {
    child.once('close', () => reject(new Error(`${PROGRAM} ended before it was ready: ${output}`)));
    child.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('process up')) resolve();
    });
  });
  const url = new URL(database.url);
  url.host = `127.0.0.1:${port}`;
  return url.href;
}

(isInstalled(PROGRAM) ? describe : describe.skip)('behind PgBouncer', () => {
  it.each([[[]], [['default_pool_size = 1']], [['server_round_robin = 1']]])(
    'in transaction mode a start is refused with one line, and leaves no lock behind (%j)',
    async (more) => {
      const url = await throughPooler(['pool_mode = transaction', ...more]);
      for (let start = 0; start < 3; start += 1) {
        const failure: unknown = await migrateDatabase(url).catch((error: unknown) => error);
        expect(failure).toMatchObject({
          name: 'TransactionPoolerError',
          message: expect.stringMatching(/^The database at 127\.0\.0\.1:\d+ is behind a pooler in transaction mode.*$/),
        });
      }
      await until(async () => (await database.query(LOCKS)).length === 0);
      expect(await database.query("SELECT to_regclass('schema_migrations') AS records")).toEqual([{ records: null }]);
    },
  );

  it('in session mode the schema is migrated', async () => {
    await migrateDatabase(await throughPooler(['pool_mode = session']));
    expect(await database.query('SELECT count(*) > 0 AS applied FROM schema_migrations')).toEqual([{ applied: true }]);
    await until(async () => (await database.query(LOCKS)).length === 0);
  });
});
