import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { goal, median, medians, spread } from '../figures.mjs';
import { startService, startFakeYoutube } from '../environment.mjs';
import { callService } from './call.mjs';
import { LATENCY_MS, WARM_UP } from './cold.mjs';

const JOBS = 6;
const PROCESSES = [1, 3];
const RUNNING_JOBS = 10;
const CALLS = 8;
const CALL_VIDEOS = 25;
const POLL_MS = 50;
const ENDED = ['completed', 'failed', 'canceled'];
/** The counters of the server lag by up to ten seconds for connections that are idle. */
const COUNTERS_LAG_MS = 11_000;
const IDLE_SECONDS = 30;

/** Archive jobs: their speed, what they cost while there are none, and what they cost a call beside them. */
export async function jobs(bench) {
  const sizes = {
    job: { videos: bench.quick ? 40 : 100, cues: 300 },
    call: { videos: bench.quick ? 20 : 100, cues: 300 },
    small: { videos: CALL_VIDEOS, cues: 300 },
  };
  const fakeYoutube = await startFakeYoutube();
  try {
    const runs = [];
    for (let run = 0; run <= Math.min(bench.runs, 3); run += 1) {
      // The first one lets the fake YouTube write its texts.
      const latencyMs = run === 0 ? 0 : LATENCY_MS;
      bench.say(`jobs: run ${run}`);
      const speeds = {};
      for (const count of PROCESSES) speeds[count] = await speed(bench, fakeYoutube, count, sizes, latencyMs);
      const calls = await callsBeside(bench, fakeYoutube, sizes, latencyMs);
      if (run > 0) runs.push({ speeds, calls });
    }
    bench.say('jobs: an empty queue');
    const idle = [
      [
        '1 process that runs no slices (JOB_CONCURRENCY=0)',
        await idleCost(bench, fakeYoutube, 1, { JOB_CONCURRENCY: '0' }),
      ],
    ];
    for (const count of PROCESSES) idle.push([processes(count), await idleCost(bench, fakeYoutube, count)]);
    return report(sizes, runs, idle);
  } finally {
    await fakeYoutube.stop();
  }
}

/** Runs something with some processes on one database, each warmed up by a call and with an empty cache otherwise. */
async function withServices(bench, fakeYoutube, count, { latencyMs, environment = {} }, work) {
  const services = [];
  try {
    for (let index = 0; index < count; index += 1) {
      const own = { DATABASE_URL: bench.databaseUrl, YOUTUBE_BASE_URL: fakeYoutube.url, CACHE_MAX_MEGABYTES: '1024' };
      services.push(await startService(bench.folder, { ...own, JOBS_PER_ORGANIZATION: '1000', ...environment }));
    }
    await fakeYoutube.setLatency(0);
    for (const service of services) await callService(bench, service, WARM_UP);
    await fakeYoutube.setLatency(latencyMs);
    return await work(services);
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
}

/** Videos per second of several jobs at a time, and of one call. */
function speed(bench, fakeYoutube, count, { job, call }, latencyMs) {
  return withServices(bench, fakeYoutube, count, { latencyMs }, async (services) => {
    const { ms } = await callService(bench, services[0], call);
    const startedAt = performance.now();
    const ids = [];
    for (let index = 0; index < JOBS; index += 1) {
      ids.push(await createJob(bench, services[index % count], { ...job, cues: job.cues + 1 + index }));
    }
    const summaries = await Promise.all(ids.map((id) => untilEnded(bench, services[0], id)));
    const seconds = (performance.now() - startedAt) / 1000;
    const wrong = summaries.find(({ fetched, total }) => fetched !== job.videos || total !== job.videos);
    if (wrong) throw new Error(`A job ended with ${JSON.stringify(wrong)}`);
    return { perSecond: (JOBS * job.videos) / seconds, callPerSecond: (1000 * call.videos) / ms };
  });
}

/** A call for 25 videos alone, and beside ten jobs that run. */
function callsBeside(bench, fakeYoutube, { job, small }, latencyMs) {
  return withServices(bench, fakeYoutube, 1, { latencyMs }, async ([service]) => {
    let called = 0;
    const call = async () => {
      called += 1;
      return (await callService(bench, service, { ...small, cues: small.cues + called })).ms;
    };
    const alone = [];
    for (let index = 0; index < CALLS; index += 1) alone.push(await call());
    const ids = [];
    for (let index = 0; index < RUNNING_JOBS; index += 1) {
      ids.push(await createJob(bench, service, { ...job, cues: job.cues + 100 + index }));
    }
    const beside = [];
    for (let index = 0; index < CALLS; index += 1) {
      beside.push(await call());
      if (ENDED.includes((await readJob(bench, service, ids.at(-1))).state))
        throw new Error('The jobs ended too early');
    }
    await Promise.all(ids.map((id) => request(bench, service, 'POST', `/jobs/${id}/cancel`)));
    return { alone, beside };
  });
}

/** Transactions per second on the database while there is no work. */
function idleCost(bench, fakeYoutube, count, environment = {}) {
  return withServices(bench, fakeYoutube, count, { latencyMs: 0, environment }, async () => {
    const seconds = bench.quick ? 5 : IDLE_SECONDS;
    const client = new pg.Client({ connectionString: bench.databaseUrl });
    await client.connect();
    const read = async () => {
      const { rows } = await client.query(
        'SELECT xact_commit + xact_rollback AS done FROM pg_stat_database WHERE datname = current_database()',
      );
      return Number(rows[0].done);
    };
    try {
      await sleep(COUNTERS_LAG_MS);
      const before = await read();
      await sleep(seconds * 1000);
      return ((await read()) - before) / seconds;
    } finally {
      await client.end();
    }
  });
}

async function createJob(bench, service, { videos, cues }) {
  const body = { channel: `@bench-${videos}x${cues}`, languages: ['en'] };
  const { id } = await request(bench, service, 'POST', '/jobs', body);
  return id;
}

const readJob = (bench, service, id) => request(bench, service, 'GET', `/jobs/${id}`);

async function untilEnded(bench, service, id) {
  for (;;) {
    const { state, summary } = await readJob(bench, service, id);
    if (ENDED.includes(state)) return summary;
    await sleep(POLL_MS);
  }
}

async function request(bench, { port }, method, path, body) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { Authorization: `Bearer ${bench.key}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${await response.text()}`);
  return response.json();
}

function report({ job, call, small }, runs, idle) {
  const speeds = PROCESSES.map((count) => [count, medians(runs.map((run) => run.speeds[count]))]);
  const alone = runs.flatMap((run) => run.calls.alone);
  const beside = runs.flatMap((run) => run.calls.beside);
  const row = (label, all) => [label, all.length, median(all), ...spread(all)];
  return {
    title: 'Archive jobs',
    text: `${JOBS} jobs at a time of ${job.videos} videos (${job.cues} cues), ${LATENCY_MS} ms a request, nothing in the cache; before them one call for ${call.videos} videos of the same size, the ceiling of a process. The processes, the fake YouTube and PostgreSQL share the machine's processors.`,
    tables: [
      {
        title: 'Speed',
        columns: ['', 'videos/s of the jobs', 'videos/s of one call before them'],
        rows: speeds.map(([count, { perSecond, callPerSecond }]) => [processes(count), perSecond, callPerSecond]),
      },
      {
        title: `A call for ${small.videos} videos`,
        columns: ['', 'calls', 'median ms', 'least', 'most'],
        rows: [row('alone', alone), row(`beside ${RUNNING_JOBS} running jobs`, beside)],
      },
      {
        title: 'An empty queue, on PostgreSQL',
        columns: ['', 'transactions/s'],
        rows: idle,
      },
    ],
    goals: [
      goal(`median of a call beside ${RUNNING_JOBS} running jobs against alone`, median(beside) / median(alone), {
        atMost: 2,
      }),
    ],
    charts: [],
  };
}

function processes(count) {
  return count === 1 ? '1 process' : `${count} processes`;
}
