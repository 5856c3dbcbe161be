import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startServer } from '../../database/programs/server.mjs';
import { makeKey, startFakeYoutube, startService } from '../environment.mjs';
import { goal, median } from '../figures.mjs';
import { ADMIN_TOKEN, checkTimes, countChanges, makeOrganization, subscribe, untilChecked } from '../subscriptions.mjs';

const ORGANIZATIONS = 20;
const SIZE = { subscriptions: 2_000, seconds: 160 };
/** So few that the pace of lists lets them all be checked at once for the first time. */
const SIZE_QUICK = { subscriptions: 8, seconds: 5 };
const LATENCY_MS = 50;
/** Lists are what the platform allows few of; a block is longer for each request meanwhile. */
const PLENTY = { burst: 1e6, perMinute: 1e6, blockSeconds: 0 };
const BUDGETS = {
  player: PLENTY,
  timedtext: PLENTY,
  list: { burst: 60, perMinute: 60, blockSeconds: 60 },
  penaltySeconds: 5,
  blockSecondsMax: 600,
};
/** Of a call. */
const VIDEOS = 10;
/** Channels whose texts are cached. Their lists are read again during the measurement, as a list is held for two minutes. */
const CACHED_CHANNELS = 20;
/** The first numbers of the channels: no subscription is to one of them. */
const CACHED_FROM = 20_000;
const COLD_FROM_ALONE = 30_000;
const COLD_FROM_BESIDE = 40_000;
const CACHED_EVERY_MS = 1_000;
const COLD_EVERY_MS = 12_000;

/** Subscriptions that are all due at once, as after a long stop, beside callers where the platform allows few lists. */
export async function due(bench) {
  const { subscriptions, seconds } = bench.quick ? SIZE_QUICK : SIZE;
  // Subscriptions that stay would load the other parts.
  const dataDir = join(bench.folder, 'postgres-due');
  await mkdir(dataDir);
  const database = await startServer(dataDir, []);
  const client = new pg.Client({ connectionString: database.url });
  const fakeYoutube = await startFakeYoutube();
  try {
    const key = await makeKey(database.url);
    await client.connect();
    const service = await startService(bench.folder, {
      DATABASE_URL: database.url,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      ADMIN_TOKEN,
      SUBSCRIPTIONS_PER_ORGANIZATION: '1000',
    });
    try {
      const run = async (name, coldFrom, begin) => {
        await fakeYoutube.reset();
        for (let channel = 0; channel < CACHED_CHANNELS; channel += 1) await call(service, key, CACHED_FROM + channel);
        await fakeYoutube.setLatency(LATENCY_MS);
        await fakeYoutube.setBudgets(BUDGETS);
        bench.say(`due: ${name}, measured for ${seconds} seconds`);
        await begin();
        return { name, ...(await measure(service, key, seconds, coldFrom)) };
      };
      const alone = await run('no subscriptions', COLD_FROM_ALONE, () => undefined);
      bench.say(`due: ${subscriptions} subscriptions, created and checked for the first time`);
      await fakeYoutube.reset();
      const keys = [];
      while (keys.length < ORGANIZATIONS) keys.push(await makeOrganization(service));
      await subscribe(service, keys, 0, subscriptions);
      await untilChecked(service, keys);
      const before = await checkTimes(service, keys);
      const beside = await run(`${subscriptions} due subscriptions`, COLD_FROM_BESIDE, () =>
        client.query('UPDATE sources SET next_check_at = now()'),
      );
      return report(alone, { ...beside, checks: countChanges(before, await checkTimes(service, keys)) });
    } finally {
      await service.stop();
    }
  } finally {
    await client.end();
    await fakeYoutube.stop();
    await database.stop();
  }
}

/** Callers that do not wait for each other: one for texts that are cached, one for channels that nobody has read. */
async function measure(service, key, seconds, coldFrom) {
  const [cached, cold] = await Promise.all([
    every(CACHED_EVERY_MS, seconds, (number) => call(service, key, CACHED_FROM + (number % CACHED_CHANNELS))),
    every(COLD_EVERY_MS, seconds, (number) => call(service, key, coldFrom + number)),
  ]);
  return { cached, cold };
}

async function every(intervalMs, seconds, work) {
  const calls = [];
  const startedAt = performance.now();
  for (let number = 0; number * intervalMs < seconds * 1_000; number += 1) {
    await sleep(Math.max(0, startedAt + number * intervalMs - performance.now()));
    calls.push(work(number));
  }
  return Promise.all(calls);
}

/** One call for a generated channel: how it ended, and how long it took. */
async function call({ port }, key, channel) {
  const startedAt = performance.now();
  const url = `http://127.0.0.1:${port}/channels/@25-videos-no-${channel}/transcripts?limit=${VIDEOS}`;
  const response = await fetch(url, { headers: { Authorization: `Bearer ${key}` } });
  const { summary, error } = await response.json();
  const end = response.ok ? (summary.succeeded === VIDEOS ? 'ok' : 'not all videos') : error.code;
  return { end, ms: performance.now() - startedAt };
}

const served = (calls) => calls.filter(({ end }) => end === 'ok');

function report(alone, beside) {
  const share = (calls) => served(calls).length / calls.length;
  const row = (name, calls, checks) => {
    const others = calls.flatMap(({ end }) => (end === 'ok' ? [] : [end]));
    const codes = [...new Set(others)].map((code) => `${others.filter((other) => other === code).length} ${code}`);
    const ms = served(calls).map((one) => one.ms);
    return [name, calls.length, served(calls).length, codes.join(', '), ms.length > 0 ? median(ms) : '', checks];
  };
  return {
    title: `Due subscriptions: ${BUDGETS.list.perMinute} lists a minute`,
    tables: [
      {
        title: `Calls of ${VIDEOS} videos`,
        columns: ['', 'calls', 'served', 'others', 'median ms', 'checks done'],
        rows: [alone, beside].flatMap(({ name, cached, cold, checks = '' }) => [
          row(`${name}: cached`, cached, ''),
          row(`${name}: cold`, cold, checks),
        ]),
      },
    ],
    goals: [
      goal('cached calls served beside due subscriptions', share(beside.cached), { atLeast: 1 }),
      goal('cold calls served, against none', share(beside.cold) / share(alone.cold), { atLeast: 1 }),
    ],
  };
}
