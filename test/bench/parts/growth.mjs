import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { startServer } from '../../database/programs/server.mjs';
import { makeKey, startFakeYoutube } from '../environment.mjs';
import { goal } from '../figures.mjs';
import { BIG_JOB_ID, Filling } from '../growth/fill.mjs';
import { ServiceWork } from '../growth/service-work.mjs';
import { isOfNoRows, labelOf, LOGGING, StatementLog } from '../growth/statements.mjs';

const SIZES = {
  reservations: 10_000_000,
  dueSlices: 100_000,
  deliveries: 1_000_000,
  jobEntries: 1_000_000,
  // A read of the feed looks at up to 1,000 of them, which a tenth has with --quick too.
  logEntries: 1_000_000,
  auditEntries: 100_000,
  sources: 50_000,
  uploadsOfOne: 50_000,
};
const QUICK_SHARE = 0.01;
/** What is filled before the statements are measured. */
const SHARES = [0.1, 1];
/** More blocks than an index of ten times the entries adds. */
const FACTOR_MAX = 1.5;
const BLOCKS_MAX = 32;
/** For a single run. One of a function can be the first that needs some of its statements, and reads the catalog to plan them: up to 2,100 blocks. */
const BLOCKS_MAX_OF_ONE = 200;
const BLOCKS_MAX_OF_ONE_FUNCTION = 3_000;
const CALLS_FUNCTION = /\b(?:quota|job|source|webhook)_\w+\(/;
/** Nothing is to be recovered, and nothing else changes the tables. */
const SERVER = [
  'fsync=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'max_wal_size=8GB',
  'checkpoint_timeout=1h',
  'autovacuum=off',
  'shared_buffers=1GB',
  'track_functions=pl',
];
const NOT_CALLED = `
  SELECT proname AS name FROM pg_proc function JOIN pg_language language ON language.oid = prolang
    LEFT JOIN pg_stat_user_functions called ON called.funcid = function.oid
    WHERE pronamespace = 'public'::regnamespace AND lanname = 'plpgsql' AND called.calls IS NULL
      -- They need an identity provider, a limit that is reached, a lease that has ended, or results that have expired.
      AND proname NOT IN ('token_client_add', 'quota_announce', 'quota_room') ORDER BY 1`;
const TABLES = `
  SELECT relname AS name, n_live_tup::double precision AS rows, pg_table_size(relid) / 1e6 AS table_mb,
         pg_indexes_size(relid) / 1e6 AS indexes_mb
    FROM pg_stat_user_tables ORDER BY pg_total_relation_size(relid) DESC LIMIT 6`;

/**
 * It looks once at each organization with a job that waits, of which there are as many as slices happened to run.
 * test/jobs/run compares it for the same number.
 */
const SWEEP = /FROM job_sweep\(/;
/** It reads every job, of which the retention bounds the number, and at most once a minute. */
const COUNTS = /AS is_subscription, state, reason, count\(\*\)/;

/** Whether any statement of the service reads more as its tables grow: the blocks of each, compared with a tenth of the rows. */
export async function growth(bench) {
  const share = bench.quick ? QUICK_SHARE : 1;
  const sizes = Object.fromEntries(Object.entries(SIZES).map(([name, rows]) => [name, rows * share]));
  const dataDir = join(bench.folder, 'growth');
  await mkdir(dataDir);
  const server = await startServer(dataDir, [...SERVER, ...LOGGING]);
  const client = new pg.Client({ connectionString: server.url });
  const fakeYoutube = await startFakeYoutube();
  try {
    await client.connect();
    await client.query('SET auto_explain.log_min_duration = -1');
    const key = await makeKey(server.url);
    const work = new ServiceWork(bench, { databaseUrl: server.url, fakeYoutube, client, key });
    const samples = await work.makeSamples();
    const log = new StatementLog(client, join(dataDir, 'postgres'));
    const filling = new Filling(client, samples, sizes);
    const measured = [];
    for (const part of SHARES) {
      bench.say(`growth: filling to ${part * sizes.reservations} calls`);
      await filling.upTo(part);
      await filling.addLeftovers();
      bench.say('growth: running every statement');
      measured.push(await log.during(() => work.everything(samples, BIG_JOB_ID)));
    }
    const { rows: notCalled } = await client.query(NOT_CALLED);
    const { rows: tables } = await client.query(TABLES);
    const problems = [...work.problems, ...notCalled.map(({ name }) => `The function ${name} was not called.`)];
    return report(measured, tables, problems);
  } finally {
    await client.end();
    await fakeYoutube.stop();
    await server.stop();
  }
}

function report([before, after], filled, problems) {
  const compared = [...before].filter(
    ([text]) => !SWEEP.test(text) && !COUNTS.test(text) && (after.has(text) || !isOfNoRows(text)),
  );
  const statements = compared.map(([text, few]) => {
    const all = after.get(text) ?? { runs: 0, first: NaN, typical: NaN, most: NaN };
    const ofOne = CALLS_FUNCTION.test(text) ? BLOCKS_MAX_OF_ONE_FUNCTION : BLOCKS_MAX_OF_ONE;
    const pairs =
      few.typical === undefined || all.typical === undefined
        ? [[few.first, all.first, ofOne]]
        : [
            [few.typical, all.typical, BLOCKS_MAX],
            [few.most, all.most, ofOne],
          ];
    const grown = pairs.find(([from, to, blocks]) => !(to <= FACTOR_MAX * from || to - from <= blocks));
    const [from, to] = grown ?? pairs[0];
    return { text, label: labelOf(text), runs: all.runs, before: from, after: to, grows: grown !== undefined };
  });
  statements.sort((one, other) => Number(other.grows) - Number(one.grows) || other.after - one.after);
  const growing = statements.filter(({ grows }) => grows);
  return {
    title: 'Growth: blocks that each statement reads',
    tables: [
      {
        title: 'The largest tables',
        columns: ['', 'rows', 'table MB', 'indexes MB'],
        rows: filled.map(({ name, rows, table_mb, indexes_mb }) => [name, rows, Number(table_mb), Number(indexes_mb)]),
      },
      {
        title: `${statements.length} statements`,
        columns: ['statement', 'runs', 'of a tenth', 'of all rows', ''],
        rows: statements.map(({ label, runs, before: few, after: all, grows }) => [
          label,
          runs,
          few,
          all,
          grows ? 'grows' : '',
        ]),
      },
    ],
    goals: [goal('statements that read more blocks of all rows than of a tenth', growing.length, { atMost: 0 })],
    failures: [
      ...growing.map(({ text, before: few, after: all }) =>
        Number.isNaN(all)
          ? `growth: it did not succeed once with all rows: ${text}`
          : `growth: ${all} blocks of all rows, ${few} of a tenth: ${text}`,
      ),
      ...problems.map((problem) => `growth: ${problem}`),
    ],
  };
}
