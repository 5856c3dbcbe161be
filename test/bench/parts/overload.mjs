import { once } from 'node:events';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { makeKey, startFakeYoutube, startService } from '../environment.mjs';
import { goal, median } from '../figures.mjs';

const LATENCY_MS = 300;
/** The defaults of the service. */
const SLOTS = 16;
const DEADLINE_SECONDS = 45;
/** A player and a text. */
const REQUESTS_PER_VIDEO = 2;
const VIDEOS = 100;
/** Texts of a few lines: what is measured is the queue. */
const CUES = 12;
/** Read before anything is measured, so that nothing is measured while V8 still translates it. */
const WARM_UP = `@bench-10x${CUES}`;
const ORGANIZATIONS = 10;
/** Callers at a time. Those of `ORGANIZATIONS` are divided among them evenly. */
const LOADS = [
  ...[1, 20, 100, 200].map((calls) => ({ calls, organizations: 1 })),
  ...[20, 200].map((calls) => ({ calls, organizations: ORGANIZATIONS })),
];
const LOADS_QUICK = [1, 20].map((calls) => ({ calls, organizations: 1 }));
const DEADLINE_SECONDS_QUICK = 10;
/** For the turns: the calls of one organization beside those of another one, which wants a few videos. */
const CALLS_BESIDE = 10;
const VIDEOS_BESIDE = 10;
const TURNS = 5;

/** More calls than the slots can serve before the deadline, and what they do to others. */
export async function overload(bench) {
  const deadlineSeconds = bench.quick ? DEADLINE_SECONDS_QUICK : DEADLINE_SECONDS;
  const keys = [bench.key];
  while (keys.length < ORGANIZATIONS) keys.push(await makeKey(bench.databaseUrl));
  const fakeYoutube = await startFakeYoutube();
  const start = () =>
    startService(bench.folder, {
      DATABASE_URL: bench.databaseUrl,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      REQUEST_DEADLINE_SECONDS: String(deadlineSeconds),
    });
  try {
    await fakeYoutube.setLatency(LATENCY_MS);
    const runs = [];
    for (const load of bench.quick ? LOADS_QUICK : LOADS) {
      bench.say(`overload: ${nameOf(load)}`);
      runs.push(await runLoad(await start(), fakeYoutube, keys.slice(0, load.organizations), load, deadlineSeconds));
    }
    bench.say('overload: turns');
    return report(runs, await measureTurns(await start(), keys, bench.quick ? 1 : TURNS), deadlineSeconds);
  } finally {
    await fakeYoutube.stop();
  }
}

/** One run on a service that has just started: nothing is cached, and it hardly knows how long a video takes. */
async function runLoad(service, fakeYoutube, keys, load, deadlineSeconds) {
  try {
    await readChannel(service, keys[0], WARM_UP);
    const before = await fakeYoutube.requestCount();
    const { value: calls, cpuSeconds } = await service.program.measure(() =>
      Promise.all(
        Array.from({ length: load.calls }, (_, call) =>
          readChannel(service, keys[call % keys.length], `@bench-${VIDEOS}x${CUES + call}`),
        ),
      ),
    );
    const requests = (await fakeYoutube.requestCount()) - before;
    const wanted = load.calls * VIDEOS;
    const allowed = Math.min(wanted, (SLOTS / ((REQUESTS_PER_VIDEO * LATENCY_MS) / 1_000)) * deadlineSeconds);
    const sum = (code) => calls.reduce((total, { ends }) => total + (ends[code] ?? 0), 0);
    const served = sum('ok');
    const firstBusy = calls.flatMap(({ firstBusySeconds }) => firstBusySeconds ?? []);
    return {
      ...load,
      served,
      requests,
      servedOfAllowed: served / allowed,
      busy: sum('upstream_busy'),
      timedOut: sum('upstream_timeout') / wanted,
      firstBusySeconds: firstBusy.length > 0 ? Math.max(...firstBusy) : 0,
      cpuMs: (cpuSeconds * 1_000) / served,
    };
  } finally {
    await service.stop();
  }
}

/** How long a few videos of one organization take beside the calls of another, which want videos that do not exist. */
async function measureTurns(service, [key, otherKey], turns) {
  let channel = 0;
  const timed = async () => {
    const startedAt = performance.now();
    const { ends } = await readChannel(service, key, `@bench-${VIDEOS_BESIDE}x${(channel += 1)}`);
    if (ends.ok !== VIDEOS_BESIDE) throw new Error(`Beside other calls: ${JSON.stringify(ends)}`);
    return (performance.now() - startedAt) / 1_000;
  };
  const inTurn = async () => {
    const seconds = [];
    while (seconds.length < turns) seconds.push(await timed());
    return median(seconds);
  };
  try {
    await timed();
    const alone = await inTurn();
    let ended = false;
    const others = Array.from({ length: CALLS_BESIDE }, async (_, call) => {
      for (let round = 0; !ended; round += 1) await readUnknown(service, otherKey, call, round);
    });
    const beside = await inTurn();
    ended = true;
    await Promise.all(others);
    return { alone, beside };
  } finally {
    await service.stop();
  }
}

function readChannel(service, key, handle) {
  return call(service, key, `/channels/${handle}/transcripts?limit=${VIDEOS}`);
}

function readUnknown(service, key, caller, round) {
  const videos = Array.from(
    { length: VIDEOS },
    (_, index) => `nil${1e7 + (round * CALLS_BESIDE + caller) * VIDEOS + index}`,
  );
  return call(service, key, '/transcripts', { videos });
}

/** One call on a connection of its own: how its videos ended, and when the first was refused. */
async function call({ port }, key, path, body) {
  const startedAt = performance.now();
  const ends = {};
  let firstBusySeconds = null;
  const count = (code, videos) => {
    ends[code] = (ends[code] ?? 0) + videos;
    if (code === 'upstream_busy') firstBusySeconds ??= (performance.now() - startedAt) / 1_000;
  };
  const headers = {
    Authorization: `Bearer ${key}`,
    Accept: 'application/x-ndjson',
    'Content-Type': 'application/json',
  };
  const sent = request({ host: '127.0.0.1', port, path, method: body ? 'POST' : 'GET', headers, agent: false });
  const [response] = await once(sent.end(body && JSON.stringify(body)), 'response');
  for await (const line of createInterface({ input: response })) {
    const { type, result, error } = JSON.parse(line);
    if (response.statusCode !== 200) count(error.code, VIDEOS);
    else if (type === 'result') count(result.error?.code ?? 'ok', 1);
    if (result?.error?.code === 'upstream_busy' && !(result.error.retryAfterSeconds >= 1))
      throw new Error(`No time to retry: ${line}`);
  }
  return { ends, firstBusySeconds };
}

function nameOf({ calls, organizations }) {
  return `${calls} call${calls === 1 ? '' : 's'}${organizations > 1 ? ` of ${organizations} organizations` : ''}`;
}

function report(runs, { alone, beside }) {
  const worst = (figure, choose) => choose(...runs.map((run) => run[figure]));
  return {
    title: 'Overload: more than the slots can serve',
    tables: [
      {
        title: `Calls of ${VIDEOS} videos at once`,
        columns: ['', 'served', 'of allowed', 'busy', 'timed out', 'last call hears s', 'requests', 'CPU ms a text'],
        rows: runs.map((run) => [
          nameOf(run),
          run.served,
          run.servedOfAllowed,
          run.busy,
          `${(100 * run.timedOut).toFixed(1)} %`,
          run.firstBusySeconds,
          run.requests,
          run.cpuMs,
        ]),
      },
      {
        title: `${VIDEOS_BESIDE} videos, seconds`,
        columns: ['alone', `beside ${CALLS_BESIDE} calls of another organization`],
        rows: [[alone, beside]],
      },
    ],
    goals: [
      goal('videos served of those that the slots allow, the worst', worst('servedOfAllowed', Math.min), {
        atLeast: 0.9,
      }),
      goal('seconds until a call hears of its first busy video, the worst', worst('firstBusySeconds', Math.max), {
        atMost: 5,
        unit: ' s',
      }),
      goal('share of videos that time out, the worst', worst('timedOut', Math.max), { atMost: 0.02 }),
      goal(`${VIDEOS_BESIDE} videos beside another organization's calls, against alone`, beside / alone, { atMost: 3 }),
    ],
  };
}
