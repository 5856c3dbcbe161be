import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { Client } from 'pg';
import { sqlStateOf } from './database-errors.js';

/** The folder with the schema of the service: `migrations` and `functions`. In a bundle they are beside this code as well. */
export const SCHEMA = import.meta.dirname;

/** An arbitrary key, the same in every process of this application. */
const LOCK = 4_771_902_381;
const LOCK_PAUSE_MS = 100;
/** Longer than migrations usually take. */
const SILENT_WAIT_MS = 5_000;
/**
 * Shorter than the lock timeout of calls: while a migration waits for a table, for example during a dump, every call that comes
 * later waits behind it. Then the calls have their turn.
 */
const LOCK_TIMEOUT = '250ms';
const RETRY_PAUSE_MS = 1_000;
/** A lock timeout, or a deadlock with a call. */
const LOCK_CONFLICTS = ['55P03', '40P01'];

const NO_TRANSACTION = '-- no transaction\n';
const NAME = /^(\d{4})-[a-z0-9-]+\.sql$/;

const RECORDS = `
  CREATE TABLE schema_migrations (
    -- Null for a file of functions.
    number integer UNIQUE,
    name text PRIMARY KEY,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL
  )`;
const RECORD = `
  INSERT INTO schema_migrations (number, name, sha256, applied_at) VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET sha256 = excluded.sha256, applied_at = excluded.applied_at`;

interface SchemaFile {
  /** Of a migration; null for a file of functions, which is applied again when its text changes. */
  readonly number: number | null;
  readonly name: string;
  readonly text: string;
  readonly sha256: string;
}

type AppliedFile = Pick<SchemaFile, 'number' | 'name' | 'sha256'>;

/** The schema of the database does not fit this program, or a file of it cannot be applied; the message is one line. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

/**
 * Applies the migrations that are pending, in the order of their numbers, then the functions whose text changed. When several
 * processes start together, one does and the others wait.
 *
 * A migration is a transaction of its own, with its record. It is repeated until it gets its locks. After the first line
 * `-- no transaction` its statements, each of which ends its line, run one by one and wait for locks: they must be
 * repeatable. The functions are one transaction.
 *
 * The runner of TypeORM has no repeatable functions, no checksums and no retries, and runs classes instead of SQL.
 *
 * @param client a connection for this alone, without timeouts, while another one has the lock
 * @param folder with the folders `migrations` and `functions`
 * @throws MigrationError
 */
export async function migrate(client: Client, folder: string): Promise<void> {
  const migrations = await migrationsIn(join(folder, 'migrations'));
  const functions = await filesIn(join(folder, 'functions'));
  const applied = await appliedFiles(client);
  refuseOthers(applied, migrations);
  const isApplied = ({ name, sha256 }: SchemaFile): boolean =>
    applied.some((file) => file.name === name && file.sha256 === sha256);
  for (const migration of migrations.filter((file) => !isApplied(file))) {
    const { text } = migration;
    if (text.startsWith(NO_TRANSACTION)) await apply(client, migration, text.split(/(?<=;)\n/));
    else await applyTogether(client, [migration]);
  }
  const changed = functions.filter((file) => !isApplied(file));
  if (changed.length > 0) await applyTogether(client, changed);
}

async function filesIn(folder: string): Promise<SchemaFile[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8');
      return { number: null, name, text, sha256: createHash('sha256').update(text).digest('hex') };
    }),
  );
}

async function migrationsIn(folder: string): Promise<SchemaFile[]> {
  return (await filesIn(folder)).map((file, index) => {
    const number = Number(NAME.exec(file.name)?.[1]);
    if (number !== index + 1) throw new MigrationError(`${file.name} is not the name of migration ${index + 1}.`);
    return { ...file, number };
  });
}

/**
 * Takes the lock of the migrations for the transaction of a connection, by polling: a process that waited in a statement would be
 * waited for by `CREATE INDEX CONCURRENTLY`.
 *
 * @param holder in a transaction at READ COMMITTED, which is for the same reason between its statements and holds no snapshot
 * @throws MigrationError after `waitSeconds`
 */
export async function lockMigrations(holder: Client, waitSeconds: number): Promise<void> {
  const startedAtMs = performance.now();
  for (let isReported = false; ; await pause(LOCK_PAUSE_MS)) {
    const { rows } = await holder.query<{ locked: boolean }>(TRY_LOCK);
    if (rows[0]?.locked === true) return;
    const waitedMs = performance.now() - startedAtMs;
    const isOver = waitedMs >= waitSeconds * 1000;
    if (!isOver && (isReported || waitedMs < SILENT_WAIT_MS)) continue;
    const found = (await holder.query<LockHolder>(LOCK_HOLDER)).rows[0];
    // Between the two statements the lock was released, or a prepared transaction has it, which has no backend.
    if (!found && !isOver) continue;
    const { pid = 'unknown', since = 'unknown', who = 'unknown' } = found ?? {};
    const held = `Another process migrates this database: the backend ${pid} of PostgreSQL (${who}) has the lock, since ${since}.`;
    if (isOver)
      throw new MigrationError(
        `${held} Waited ${waitSeconds} s (MIGRATION_WAIT_SECONDS). If it does not end: SELECT pg_terminate_backend(${pid})`,
      );
    isReported = true;
    new Logger('Migrations').warn({ event: 'migration_waits', message: `${held} Waiting for it.` });
  }
}

/** Without parameters, with which pg leaves a portal open and PostgreSQL its snapshot. */
const TRY_LOCK = `SELECT pg_try_advisory_xact_lock(${LOCK}) AS locked`;

interface LockHolder {
  pid: number;
  since: string;
  who: string;
}

/** Others than the owner of a session and superusers see no more than its process ID. */
const LOCK_HOLDER = `
  SELECT pid, coalesce(to_char(coalesce(xact_start, backend_start) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'unknown') AS since,
         concat_ws(', ', application_name, usename, client_addr) AS who
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = ${LOCK} AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

async function appliedFiles(client: Client): Promise<AppliedFile[]> {
  const { rows } = await client.query<{ known: boolean; filled: boolean }>(
    `SELECT to_regclass('schema_migrations') IS NOT NULL AS known, to_regclass('organizations') IS NOT NULL AS filled`,
  );
  if (rows[0]?.known === false) {
    if (rows[0].filled) {
      throw new MigrationError(
        'The database has tables of a version before the first release, which cannot be migrated. Use an empty database.',
      );
    }
    await client.query(RECORDS);
  }
  return (await client.query<AppliedFile>('SELECT number, name, sha256 FROM schema_migrations ORDER BY number')).rows;
}

/** Refuses a database that is newer than this program, or whose migrations are others. */
function refuseOthers(applied: readonly AppliedFile[], migrations: readonly SchemaFile[]): void {
  for (const { number, name, sha256 } of applied) {
    if (number === null) continue;
    const file = migrations[number - 1];
    if (file?.name === name && file.sha256 === sha256) continue;
    throw new MigrationError(
      file
        ? `Migration ${file.name} is not the ${name} that was applied to this database. Restore its text; a change is a further migration.`
        : `The database is newer than this program: it has migration ${name}. Start a version that has it as well.`,
    );
  }
}

/** In one transaction, which is repeated until it gets its locks. */
async function applyTogether(client: Client, files: readonly SchemaFile[]): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    // Functions may use each other in any order.
    await client.query(`BEGIN; SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'; SET LOCAL check_function_bodies = off`);
    try {
      for (const file of files) await apply(client, file, [file.text]);
      await client.query('COMMIT');
      return;
    } catch (error) {
      if (!(error instanceof MigrationError) || !LOCK_CONFLICTS.includes(sqlStateOf(error.cause) ?? '')) throw error;
      await client.query('ROLLBACK');
      const message = `${error.message} Another session, such as a dump, holds the lock: trying again every second.`;
      if (isFirst) new Logger('Migrations').warn({ event: 'migration_waits', message });
      await pause(RETRY_PAUSE_MS);
    }
  }
}

async function apply(client: Client, file: SchemaFile, statements: readonly string[]): Promise<void> {
  try {
    for (const statement of statements) await client.query(statement);
    await client.query(RECORD, [file.number, file.name, file.sha256]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new MigrationError(`${file.name} failed: ${reason}.`, { cause: error });
  }
}
