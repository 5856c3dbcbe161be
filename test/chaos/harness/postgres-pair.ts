import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from '../../free-port.js';
import { OwnDatabase, prepareServer, type Database } from './database.js';
import { until } from './until.js';

const run = promisify(execFile);

/** A second loopback address: replication uses it, so that its link can be cut without the other connections. */
export const REPLICATION_ADDRESS = '127.0.0.2';
const SETTINGS = [
  'fsync=off',
  `listen_addresses=127.0.0.1,${REPLICATION_ADDRESS}`,
  // A standby that is made from a copy reads the rest from the primary.
  'wal_keep_size=256MB',
  'wal_sender_timeout=5s',
  'wal_receiver_timeout=5s',
  'wal_retrieve_retry_interval=200ms',
];

interface Member {
  readonly port: number;
  readonly dataDir: string;
  database: Database | undefined;
}

/** A PostgreSQL and its synchronous standby, which exchange their roles with each failover. */
export class PostgresPair {
  private constructor(
    private primaryMember: Member,
    private standbyMember: Member,
  ) {}

  static async start(folder: string): Promise<PostgresPair> {
    const member = async (name: string): Promise<Member> => {
      const dataDir = join(folder, name);
      await mkdir(dataDir, { recursive: true });
      await chmod(dataDir, 0o711);
      return { port: await freePort(), dataDir, database: undefined };
    };
    const primary = await member('postgres-a');
    primary.database = new OwnDatabase(await prepareServer(primary.dataDir), primary.port);
    await primary.database.start(SETTINGS);
    await primary.database.query(primary.database.adminUrl, 'CREATE ROLE haproxy_check LOGIN');
    return new PostgresPair(primary, await member('postgres-b'));
  }

  get ports(): readonly [number, number] {
    return [this.primaryMember.port, this.standbyMember.port];
  }

  get primary(): Database {
    return running(this.primaryMember);
  }

  get primaryPort(): number {
    return this.primaryMember.port;
  }

  /** Makes the standby from a copy of the running primary; from then on every commit waits for it. */
  async attachStandby(): Promise<void> {
    const { primary, standbyMember: member } = this;
    await until('The primary is copied', () => this.copy().then(() => true), 60_000, 500);
    member.database = new OwnDatabase(await prepareServer(member.dataDir), member.port);
    const from = new URL(primary.adminUrl);
    const source = `host=${REPLICATION_ADDRESS} port=${from.port} user=${from.username} password=${from.password}`;
    await member.database.start([...SETTINGS, `primary_conninfo=${source} application_name=standby`]);
    await until('The standby follows', async () => (await this.states()).includes('streaming'));
    await primary.query(primary.adminUrl, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await primary.query(primary.adminUrl, 'SELECT pg_reload_conf()');
    await until('The standby is synchronous', async () => (await this.states('sync_state')).includes('sync'));
  }

  /** Promotes the standby. The old primary is not contacted; it must be stopped before it can be reached again. */
  async promote(): Promise<void> {
    const promoted = running(this.standbyMember);
    await promoted.query(promoted.adminUrl, 'SELECT pg_promote()');
    [this.primaryMember, this.standbyMember] = [this.standbyMember, this.primaryMember];
  }

  /** Kills the server that is not the primary and removes its data. */
  async removeStandby(): Promise<void> {
    await this.standbyMember.database?.kill();
    this.standbyMember.database = undefined;
    await rm(join(this.standbyMember.dataDir, 'postgres'), { recursive: true, force: true });
  }

  async stop(): Promise<void> {
    for (const { database } of [this.primaryMember, this.standbyMember]) {
      await database?.thaw();
      await database?.kill();
    }
  }

  private async states(column = 'state'): Promise<unknown[]> {
    const rows = await this.primary.query(this.primary.adminUrl, `SELECT ${column} AS value FROM pg_stat_replication`);
    return rows.map(({ value }) => value);
  }

  /** As pg_basebackup does, which the embedded PostgreSQL does not contain. */
  private async copy(): Promise<void> {
    const from = join(this.primaryMember.dataDir, 'postgres');
    const to = join(this.standbyMember.dataDir, 'postgres');
    const client = new pg.Client({ connectionString: this.primary.adminUrl });
    await client.connect();
    try {
      await client.query("SELECT pg_backup_start('standby', true)");
      await rm(to, { recursive: true, force: true });
      await run('cp', ['-a', from, to]);
      const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
      for (const name of ['postmaster.pid', 'postmaster.opts']) await rm(join(to, name), { force: true });
      for (const name of await readdir(join(to, 'pg_wal'))) {
        if (/^[0-9A-F]{24}$/.test(name)) await rm(join(to, 'pg_wal', name));
      }
      await writeFile(join(to, 'backup_label'), rows[0]?.labelfile ?? '');
      await writeFile(join(to, 'standby.signal'), '');
      // The copy's own setting applies after its promotion, when it has no standby.
      await writeFile(join(to, 'postgresql.auto.conf'), '');
      await run('chown', [
        '--reference',
        join(to, 'PG_VERSION'),
        ...['backup_label', 'standby.signal', 'postgresql.auto.conf'].map((name) => join(to, name)),
      ]);
    } finally {
      await client.end();
    }
  }
}

function running({ database }: Member): Database {
  if (!database) throw new Error('The PostgreSQL does not run.');
  return database;
}
