import pg from 'pg';
import { ADMIN_ROLE, SERVICE_ROLE, type PostgresCluster } from './postgres-cluster.js';
import type { Listener } from './postmaster.js';

/** The database of the application. */
export const DATABASE = 'channel_transcripts';

/** An advisory lock in the database `postgres`: one process at a time sets up the role. */
const SETUP_LOCK = 3;

/** The error class for a role that does not exist, has no password yet or may not log in. */
const INVALID_AUTHORIZATION = /^28/;

/** Whether a connection was refused because the service's role is not set up. */
export function isRoleMissing(error: unknown): boolean {
  return error instanceof pg.DatabaseError && INVALID_AUTHORIZATION.test(error.code ?? '');
}

/**
 * Creates the service's role and the application's database, or transfers the database of an earlier version, in which the
 * superuser owned everything. Login is enabled last, so that a later process repeats the setup if this one is killed.
 */
export async function prepareServiceRole(cluster: PostgresCluster, listener: Listener): Promise<void> {
  await withAdmin(cluster, listener, 'postgres', async (admin) => {
    await admin.query(`SELECT pg_advisory_lock(${SETUP_LOCK})`);
    if (!(await exists(admin, 'pg_roles WHERE rolname = $1', SERVICE_ROLE))) {
      await admin.query(
        `CREATE ROLE ${SERVICE_ROLE} NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS`,
      );
    }
    if (await exists(admin, 'pg_database WHERE datname = $1', DATABASE))
      await transferOwnership(cluster, listener, admin);
    else await admin.query(`CREATE DATABASE ${DATABASE} OWNER ${SERVICE_ROLE}`);
    await admin.query(`ALTER ROLE ${SERVICE_ROLE} LOGIN PASSWORD '${cluster.servicePassword}'`);
  });
}

async function transferOwnership(cluster: PostgresCluster, listener: Listener, admin: pg.Client): Promise<void> {
  await admin.query(`ALTER DATABASE ${DATABASE} OWNER TO ${SERVICE_ROLE}`);
  await withAdmin(cluster, listener, DATABASE, async (client) => {
    const { rows } = await client.query<{ statement: string }>(TRANSFER_OWNERSHIP, [ADMIN_ROLE, SERVICE_ROLE]);
    await client.query(['BEGIN', ...rows.map(({ statement }) => statement), 'COMMIT'].join(';\n'));
  });
}

/**
 * Generates the statements that transfer the application's objects: schemas, tables and other relations, functions and
 * types. `REASSIGN OWNED` rejects the role that initdb created. The owner of a table's sequence or type follows its table.
 */
const TRANSFER_OWNERSHIP = `
  WITH made AS (
    SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
  )
  SELECT format('ALTER SCHEMA %I OWNER TO %I', made.nspname, $2::text) AS statement
    FROM made JOIN pg_namespace USING (oid) WHERE nspowner = $1::regrole
  UNION ALL
  SELECT format('ALTER TABLE %I.%I OWNER TO %I', made.nspname, relname, $2)
    FROM pg_class JOIN made ON made.oid = relnamespace
   WHERE relowner = $1::regrole AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT EXISTS (
     SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype IN ('a', 'i')
       AND refclassid = 'pg_class'::regclass AND relkind = 'S')
  UNION ALL
  SELECT format('ALTER ROUTINE %I.%I(%s) OWNER TO %I', made.nspname, proname, pg_get_function_identity_arguments(pg_proc.oid), $2)
    FROM pg_proc JOIN made ON made.oid = pronamespace WHERE proowner = $1::regrole
  UNION ALL
  SELECT format('ALTER TYPE %I.%I OWNER TO %I', made.nspname, typname, $2)
    FROM pg_type JOIN made ON made.oid = typnamespace
   WHERE typowner = $1::regrole AND (typtype IN ('e', 'd', 'r')
      OR typtype = 'c' AND EXISTS (SELECT FROM pg_class WHERE pg_class.oid = typrelid AND relkind = 'c'))`;

async function exists(client: pg.Client, condition: string, value: string): Promise<boolean> {
  return ((await client.query(`SELECT FROM ${condition}`, [value])).rowCount ?? 0) > 0;
}

/** Runs work on a superuser connection, which is closed afterwards. */
async function withAdmin(
  cluster: PostgresCluster,
  { host, port }: Listener,
  database: string,
  work: (admin: pg.Client) => Promise<void>,
): Promise<void> {
  const admin = new pg.Client({
    ...{ host, port, user: ADMIN_ROLE, password: cluster.adminPassword, database },
    application_name: 'channel-transcripts setup',
    connectionTimeoutMillis: 5_000,
  });
  admin.on('error', () => undefined);
  try {
    await admin.connect();
    await work(admin);
  } finally {
    await admin.end().catch(() => undefined);
  }
}
