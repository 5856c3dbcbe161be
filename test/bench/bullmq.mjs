/*
 * Measures BullMQ on its PostgreSQL backend as the engine that wakes the workers of archive jobs: docs/decisions has the
 * figures. BullMQ is no dependency of this project; install it elsewhere first:
 *
 *   npm install --prefix /tmp/bullmq bullmq@6.7.0
 *   npm run test:build && node test/bench/bullmq.mjs --bullmq /tmp/bullmq
 */
import { fork, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { makeFolder, openDatabase } from './environment.mjs';
import { median } from './figures.mjs';
import { PROJECT } from './processes.mjs';

const SCHEMA = 'bullmq';
const QUEUE = 'slices';
const LOCK_MS = 5_000;
/** Statistics of an idle connection reach the server's counters after up to ten seconds. */
const SETTLE_MS = 12_000;

const { values } = parseArgs({
  options: { bullmq: { type: 'string' }, worker: { type: 'string' }, seconds: { type: 'string', default: '60' } },
});
if (values.bullmq === undefined) {
  process.stderr.write('Usage: node test/bench/bullmq.mjs --bullmq FOLDER [--seconds N]\n');
  process.exit(2);
}
const require = createRequire(join(resolve(values.bullmq), 'package.json'));
const entry = pathToFileURL(require.resolve('bullmq')).href;

if (values.worker === undefined) await measureAll(Number(values.seconds));
else await work(values.worker);

/** A process with one queue and one worker, which reports each wake-up and adds one on request. */
async function work(url) {
  const { Queue, Worker, createPostgresBackend, runMigrations } = await import(entry);
  const pool = new pg.Pool({ connectionString: url, options: `-c search_path=${SCHEMA}`, max: 4, keepAlive: true });
  let statements = 0;
  pool.on('connect', (client) => {
    const query = client.query.bind(client);
    client.query = (...given) => {
      statements += 1;
      return query(...given);
    };
  });
  const send = (message) => process.send?.({ ...message, atMs: monotonicMs() });
  const errors = new Map();
  const count = ({ message }) => errors.set(message, (errors.get(message) ?? 0) + 1);
  try {
    const client = await pool.connect();
    try {
      await runMigrations(client, SCHEMA);
    } finally {
      client.release();
    }
    const queue = new Queue(QUEUE, { connection: pool }, createPostgresBackend);
    const look = async ({ data }) => {
      send({ event: 'look', id: data.id });
      if (data.holdMs) await sleep(data.holdMs);
      send({ event: 'looked', id: data.id });
    };
    const settings = { lockDuration: LOCK_MS, stalledInterval: LOCK_MS, maxStalledCount: 1_000_000, concurrency: 2 };
    const worker = new Worker(QUEUE, look, { connection: pool, ...settings }, createPostgresBackend);
    queue.on('error', count);
    worker.on('error', count);
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    process.on('message', (message) => {
      if (message.add) {
        const options = { removeOnComplete: true, removeOnFail: true, delay: message.delayMs };
        queue.add('slice', message.add, options).catch(count);
      }
      if (message.errors) send({ event: 'errors', statements, errors: [...errors] });
    });
    process.once('disconnect', () => process.exit(0));
    send({ event: 'ready' });
  } catch (error) {
    send({ event: 'failed', message: error.message });
    process.exit(1);
  }
}

async function measureAll(seconds) {
  const folder = await makeFolder();
  const database = await openDatabase(folder.path);
  const workers = [];
  try {
    printLoad();
    const databases = await Promise.all(['alone', 'three'].map((name) => createDatabase(database.url, name)));
    const groups = await Promise.all(
      databases.map(async (url, index) => {
        const group = [];
        for (let count = 0; count < (index === 0 ? 1 : 3); count += 1) group.push(await startWorker(url));
        workers.push(...group);
        return { url, group };
      }),
    );
    for (const { url, group } of groups) await printIdle(url, group, seconds);
    await printWake(groups[1].group);
    await printKill(groups[1]);
    await printRestart(groups[0]);
    await printPooled(database.url);
  } finally {
    for (const worker of workers) worker.child.kill('SIGKILL');
    await database.close();
    await folder.remove();
  }
}

/** What importing costs a process. */
function printLoad() {
  const measure = (source) => {
    const program = `const from = performance.now(); ${source}
      const ms = performance.now() - from; globalThis.gc();
      console.log(JSON.stringify({ ms, rss: process.memoryUsage.rss() }));`;
    const runs = Array.from({ length: 5 }, () =>
      JSON.parse(
        spawnSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', program], {
          cwd: PROJECT,
          encoding: 'utf8',
        }).stdout,
      ),
    );
    return ['ms', 'rss'].map((name) => median(runs.map((run) => run[name])));
  };
  const [before, after] = ['', `await import('pg'); `].map((own) => measure(`${own}`));
  const both = measure(`await import('pg'); await import(${JSON.stringify(entry)});`);
  print('import of pg', `${after[0].toFixed(0)} ms, ${mb(after[1] - before[1])} MB`);
  print('import of BullMQ after it', `${(both[0] - after[0]).toFixed(0)} ms, ${mb(both[1] - after[1])} MB`);
}

async function printIdle(url, group, seconds) {
  await sleep(SETTLE_MS);
  const read = () =>
    query(url, `SELECT xact_commit + xact_rollback AS done FROM pg_stat_database WHERE datname = current_database()`);
  const sent = async () =>
    (await Promise.all(group.map((one) => one.report()))).reduce((sum, one) => sum + one.statements, 0);
  const [before, sentBefore] = [await read(), await sent()];
  await sleep(seconds * 1000);
  const [after, sentAfter] = [await read(), await sent()];
  const commits = (Number(after[0].done) - Number(before[0].done) - 1) / seconds;
  const [{ count }] = await query(
    url,
    `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  print(
    `idle, ${group.length} process(es)`,
    `${((sentAfter - sentBefore) / seconds).toFixed(2)} statements/s sent, ${commits.toFixed(2)} transactions/s, ${count} connections`,
  );
}

async function printWake(group) {
  const delays = [];
  for (let round = 0; round < 20; round += 1) {
    const id = `wake-${round}`;
    const looked = Promise.race(group.map((one) => one.next('look', id)));
    const fromMs = monotonicMs();
    group[0].child.send({ add: { id } });
    delays.push((await looked).atMs - fromMs);
    await sleep(100);
  }
  print(
    'from adding to the look, 3 processes',
    `${median(delays).toFixed(1)} ms, at most ${Math.max(...delays).toFixed(0)} ms`,
  );
}

/** kill -9 of the process that runs a wake-up. */
async function printKill({ group }) {
  const looks = group.map((one, index) => one.next('look', 'kill').then(() => index));
  group[0].child.send({ add: { id: 'kill', holdMs: 600_000 } });
  const index = await Promise.race(looks);
  const others = group.filter((_one, at) => at !== index);
  const again = Promise.race(others.map((one) => one.next('look', 'kill')));
  const fromMs = monotonicMs();
  group[index].child.kill('SIGKILL');
  const ends = await Promise.race([again, sleep(60_000)]);
  print(
    'kill -9 in the middle: run again after',
    ends ? `${((ends.atMs - fromMs) / 1000).toFixed(1)} s` : 'not within 60 s',
  );
}

/** Every connection is closed by the server, as by its restart. */
async function printRestart({ url, group: [one] }) {
  await query(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  const delays = [];
  for (let round = 0; round < 5; round += 1) {
    const looked = one.next('look', `restart-${round}`);
    const fromMs = monotonicMs();
    one.child.send({ add: { id: `restart-${round}` } });
    const seen = await Promise.race([looked, sleep(30_000)]);
    delays.push(seen ? seen.atMs - fromMs : Infinity);
  }
  const { errors } = await one.report();
  print(
    'all connections terminated',
    `looks after ${delays.map((ms) => ms.toFixed(0)).join(', ')} ms; errors ${JSON.stringify(errors)}`,
  );
}

/** Behind PgBouncer in transaction mode, which refuses startup options or, if configured so, ignores them. */
async function printPooled(serverUrl) {
  const { PgBouncer, pgbouncerIsInstalled } = await import('../../dist-tools/test/database/pgbouncer.js');
  if (!pgbouncerIsInstalled) return;
  for (const [name, settings, byRole] of [
    ['refuses options', {}, false],
    ['ignores options', { ignore_startup_parameters: 'options,extra_float_digits' }, false],
    [
      'ignores options, search_path set for the database',
      { ignore_startup_parameters: 'options,extra_float_digits' },
      true,
    ],
  ]) {
    const url = await createDatabase(serverUrl, `pooled_${Math.random().toString(36).slice(2)}`);
    if (byRole) await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = ${SCHEMA}`);
    const bouncer = await PgBouncer.start(serverUrl, { default_pool_size: 10, ...settings });
    try {
      const workers = [await startWorker(bouncer.url(url)), await startWorker(bouncer.url(url))];
      const delays = [];
      for (let round = 0; round < 3; round += 1) {
        // Long enough for the worker to wait for a notification.
        await sleep(6_500);
        const looked = Promise.race(workers.map((worker) => worker.next('look', `pooled-${round}`)));
        const fromMs = monotonicMs();
        workers[0].child.send({ add: { id: `pooled-${round}` } });
        const seen = await Promise.race([looked, sleep(20_000)]);
        delays.push(seen ? seen.atMs - fromMs : Infinity);
      }
      const { errors } = await workers[0].report();
      for (const { child } of workers) child.kill('SIGKILL');
      print(
        `PgBouncer that ${name}`,
        `looks after ${delays.map((ms) => ms.toFixed(0)).join(', ')} ms; errors ${JSON.stringify(errors)}`,
      );
    } catch (error) {
      print(`PgBouncer that ${name}`, `no start: ${error.message}`);
    } finally {
      await bouncer.stop();
    }
  }
}

async function startWorker(url) {
  const child = fork(import.meta.filename, ['--bullmq', values.bullmq, '--worker', url]);
  // One for each wake-up that another process took.
  child.setMaxListeners(0);
  /** The next message of a kind; subscribe before what causes it. */
  const next = (event, id) =>
    new Promise((resolve, reject) => {
      const read = (message) => {
        if (message.event === 'failed') reject(new Error(message.message));
        else if (message.event !== event || (id !== undefined && message.id !== id)) return;
        else resolve(message);
        child.off('message', read);
      };
      child.on('message', read);
    });
  await next('ready');
  const report = async () => {
    const reported = next('errors');
    child.send({ errors: true });
    return reported;
  };
  return { child, next, report };
}

async function createDatabase(serverUrl, name) {
  await query(serverUrl, `CREATE DATABASE bullmq_${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/bullmq_${name}`;
  return url.href;
}

async function query(url, statement) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

/** One clock for all processes of this machine. */
function monotonicMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

function mb(bytes) {
  return (bytes / 2 ** 20).toFixed(1);
}

function print(what, measured) {
  process.stdout.write(`${what.padEnd(60)} ${measured}\n`);
}
