import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { goal, median, sharesOf } from '../figures.mjs';
import { Connection, load } from '../http-reader.mjs';
import { startService, startFakeYoutube } from '../environment.mjs';
import { callService, pathOf, smallLoad } from './call.mjs';

const CONNECTIONS = 2;
const SLOW_READERS = 50;

export async function cached(bench) {
  const size = { videos: bench.quick ? 20 : 100, cues: bench.quick ? 300 : 1_500 };
  const seconds = bench.quick ? 1 : 3;
  const fakeYoutube = await startFakeYoutube();
  try {
    const speed = await measureSpeed(bench, fakeYoutube, size, seconds);
    const memory = [];
    for (let run = 0; run < Math.min(bench.runs, 3); run += 1) {
      bench.say(`cached: ${SLOW_READERS} slow readers, run ${run + 1}`);
      memory.push(await measureSlowReaders(bench, fakeYoutube, size));
    }
    return report(size, speed, memory);
  } finally {
    await fakeYoutube.stop();
  }
}

/** The service with a channel in its cache, and a bare server with the same bytes in its memory. */
export async function startBoth(bench, fakeYoutube, size, environment = {}) {
  const service = await startFilled(bench, fakeYoutube, size, environment);
  const bodyFile = join(bench.folder, 'body.json');
  await writeFile(bodyFile, service.body);
  const bare = await startService(
    bench.folder,
    { BODY_FILE: bodyFile },
    { name: 'bare-server', main: 'test/bench/programs/bare-server.mjs' },
  );
  return { service, bare };
}

/** A service that has served a call once; `body` is its cached response. */
export async function startFilled(bench, fakeYoutube, size, environment = {}) {
  const service = await startService(bench.folder, {
    ...{ DATABASE_URL: bench.databaseUrl, YOUTUBE_BASE_URL: fakeYoutube.url },
    ...environment,
  });
  await callService(bench, service, size);
  const { body, cached: fromCache } = await callService(bench, service, size);
  if (fromCache !== Math.min(size.videos, size.limit ?? size.videos)) throw new Error('A second call was not cached');
  return { ...service, body };
}

async function measureSpeed(bench, fakeYoutube, size, seconds) {
  const { service, bare } = await startBoth(bench, fakeYoutube, size);
  try {
    const runs = [];
    for (let run = 0; run <= bench.runs; run += 1) {
      if (run > 0) bench.say(`cached: run ${run}`);
      const figures = await bothWays(bench, service, bare, size, run === 0 ? seconds / 3 : seconds);
      // The first one warms up.
      if (run > 0) runs.push(figures);
    }
    const one = { port: service.port, path: pathOf({ ...size, limit: 1 }), program: service.program };
    const oneCpuMs = (await smallLoad(bench, one, seconds)).cpuMs;
    const profile = sharesOf(
      await service.program.profile(() => load({ ...ways(bench, service, size).gzip, seconds })),
      8,
    );
    return { runs, bodyBytes: service.body.length, oneCpuMs, profile };
  } finally {
    await service.stop();
    await bare.stop();
  }
}

function ways(bench, { port }, size) {
  const asked = { port, path: pathOf(size), connections: CONNECTIONS };
  const Authorization = `Bearer ${bench.key}`;
  return {
    plain: { ...asked, headers: { Authorization } },
    gzip: { ...asked, headers: { Authorization, 'Accept-Encoding': 'gzip' } },
  };
}

/** One after the other, so that each has the machine to itself. */
export async function bothWays(bench, service, bare, size, seconds) {
  const figures = {};
  for (const [name, server] of Object.entries({ service, bare })) {
    for (const [encoding, way] of Object.entries(ways(bench, server, size))) {
      const measured = await server.program.measure(() => load({ ...way, seconds }));
      const { perSecond, bytesPerSecond, latencies } = measured.value;
      figures[`${name}.${encoding}`] = {
        ...{ perSecond, bytesPerSecond },
        cpuMs: (measured.cpuSeconds * 1000) / latencies.length,
      };
    }
  }
  return figures;
}

/** The increase of memory while many clients read slowly, over its idle value. */
async function measureSlowReaders(bench, fakeYoutube, size) {
  const service = await startFilled(bench, fakeYoutube, size);
  try {
    await sleep(1_000);
    const { peakMb, rssAtStartMb } = await service.program.measure(() =>
      Promise.all(Array.from({ length: SLOW_READERS }, () => readSlowly(bench, service.port, size))),
    );
    return { overIdleMb: peakMb - rssAtStartMb, idleMb: rssAtStartMb };
  } finally {
    await service.stop();
  }
}

/** Reads slowly in pieces; after some seconds it reads fast, so that the benchmark ends. */
async function readSlowly(bench, port, size) {
  const connection = new Connection(port, pathOf(size), { Authorization: `Bearer ${bench.key}` });
  const slowUntil = performance.now() + (bench.quick ? 2_000 : 8_000);
  const { status } = await connection.get({
    onBytes: () => {
      if (performance.now() < slowUntil) connection.pause(250);
    },
  });
  connection.close();
  if (status !== 200) throw new Error(`A slow reader received ${status}`);
}

function report(size, { runs, bodyBytes, oneCpuMs, profile }, memory) {
  const of = (name, figure) => median(runs.map((run) => run[name][figure]));
  const ratio = (encoding) =>
    median(runs.map((run) => run[`service.${encoding}`].perSecond / run[`bare.${encoding}`].perSecond));
  const megabytes = bodyBytes / 1e6;
  const row = (label, name) => [
    label,
    of(name, 'perSecond'),
    of(name, 'perSecond') * megabytes,
    of(name, 'bytesPerSecond') / of(name, 'perSecond') / 1e6,
    of(name, 'cpuMs'),
  ];
  // The share of its throughput that the bare server would reach with the cost of the guards in each response.
  const gated = (name) => of(name, 'cpuMs') / (of(name, 'cpuMs') + oneCpuMs);
  const overIdleMb = median(memory.map((run) => run.overIdleMb));
  const rows = [
    row('the service', 'service.plain'),
    row('bare node:http', 'bare.plain'),
    row('the service, gzip', 'service.gzip'),
    row('bare node:http, gzip', 'bare.gzip'),
  ];
  return {
    title: 'Cached: the same videos again',
    text: `${size.videos} videos of ${size.cues} cues, ${megabytes.toFixed(1)} MB of JSON per response, over ${CONNECTIONS} connections. The bare server writes the same bytes from memory, compressed in advance for gzip. Compressed sizes differ, so the ratios compare the JSON that is received.`,
    tables: [{ title: 'Speed', columns: ['', 'answers/s', 'MB of JSON/s', 'MB sent', 'CPU ms an answer'], rows }],
    goals: [
      goal('bytes a second against bare node:http', ratio('plain'), { atLeast: 0.8 }),
      goal('bytes a second against bare node:http, gzip', ratio('gzip'), { atLeast: 0.8 }),
      goal(`peak memory over idle with ${SLOW_READERS} slow readers`, overIdleMb, { atMost: 150, unit: ' MB' }),
    ],
    notes: [
      `A call of limit=1 costs ${oneCpuMs.toFixed(2)} ms of CPU for the key lookup, limits, quota and log. With that cost per response the bare server would reach ${gated('bare.plain').toFixed(2)} of its throughput, and with gzip, where it needs only ${of('bare.gzip', 'cpuMs').toFixed(2)} ms, ${gated('bare.gzip').toFixed(2)}: this limits these figures.`,
      `Idle, with the cache filled: ${median(memory.map((run) => run.idleMb)).toFixed(0)} MB.`,
    ],
    profile,
    profileOf: 'with gzip',
    charts: [
      {
        ...{ file: 'cached.svg', title: 'Cached: JSON that arrives', unit: 'MB/s' },
        bars: rows.map(([label, , value]) => ({ label, value, ours: label.startsWith('the service') })),
      },
    ],
  };
}
