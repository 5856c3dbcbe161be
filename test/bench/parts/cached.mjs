import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { goal, median } from '../figures.mjs';
import { Connection, load } from '../http-reader.mjs';
import { startService, startFakeYoutube } from '../environment.mjs';
import { callService, pathOf } from './call.mjs';

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
    return report(speed, memory);
  } finally {
    await fakeYoutube.stop();
  }
}

/** A bare server that does the guards' work before each response, with the bytes of `writeBody`. */
export function startGuarded(bench) {
  return startWithBody(bench, 'guarded-server', { DATABASE_URL: bench.databaseUrl });
}

/** The service with routes whose controller returns the bytes of `writeBody`. */
export function startConstant(bench, fakeYoutube) {
  const environment = { DATABASE_URL: bench.databaseUrl, YOUTUBE_BASE_URL: fakeYoutube.url };
  return startWithBody(bench, 'constant-controller', environment);
}

/** Writes the response that the servers beside the service return. */
export function writeBody(bench, body) {
  return writeFile(bodyFile(bench), body);
}

function bodyFile({ folder }) {
  return join(folder, 'body.json');
}

function startWithBody(bench, name, environment) {
  const main = `test/bench/programs/${name}.mjs`;
  return startService(bench.folder, { BODY_FILE: bodyFile(bench), ...environment }, { name, main });
}

/** A service that has served a call once; `body` is its cached response. */
export async function startFilled(bench, fakeYoutube, size) {
  const environment = { DATABASE_URL: bench.databaseUrl, YOUTUBE_BASE_URL: fakeYoutube.url };
  const service = await startService(bench.folder, environment);
  await callService(bench, service, size);
  const { body, cached: fromCache } = await callService(bench, service, size);
  if (fromCache !== Math.min(size.videos, size.limit ?? size.videos)) throw new Error('A second call was not cached');
  return { ...service, body };
}

async function measureSpeed(bench, fakeYoutube, size, seconds) {
  const service = await startFilled(bench, fakeYoutube, size);
  await writeBody(bench, service.body);
  const bare = await startWithBody(bench, 'bare-server', {});
  const guarded = await startGuarded(bench);
  const constant = { ...(await startConstant(bench, fakeYoutube)), path: '/constant/buffer' };
  const servers = { service, constant, guarded, bare };
  try {
    const runs = [];
    for (let run = 0; run <= bench.runs; run += 1) {
      if (run > 0) bench.say(`cached: run ${run}`);
      const figures = await bothWays(bench, servers, size, run === 0 ? seconds / 3 : seconds);
      // The first one warms up.
      if (run > 0) runs.push(figures);
    }
    return runs;
  } finally {
    for (const server of Object.values(servers)) await server.stop();
  }
}

function ways(bench, { port, path }, size) {
  const asked = { port, path: path ?? pathOf(size), connections: CONNECTIONS };
  const Authorization = `Bearer ${bench.key}`;
  return {
    plain: { ...asked, headers: { Authorization } },
    gzip: { ...asked, headers: { Authorization, 'Accept-Encoding': 'gzip' } },
  };
}

/** One after the other, so that each has the machine to itself. */
async function bothWays(bench, servers, size, seconds) {
  const figures = {};
  for (const [name, server] of Object.entries(servers)) {
    for (const [encoding, way] of Object.entries(ways(bench, server, size))) {
      const measured = await server.program.measure(() => load({ ...way, seconds }));
      const { perSecond, latencies } = measured.value;
      figures[`${name}.${encoding}`] = { perSecond, cpuMs: (measured.cpuSeconds * 1000) / latencies.length };
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
    return peakMb - rssAtStartMb;
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

function report(runs, memory) {
  const of = (name, figure) => median(runs.map((run) => run[name][figure]));
  const ratio = (encoding) =>
    median(runs.map((run) => run[`service.${encoding}`].perSecond / run[`guarded.${encoding}`].perSecond));
  const row = (label, name) => [label, of(name, 'perSecond'), of(name, 'cpuMs')];
  const rows = [
    row('the service', 'service.plain'),
    row('a constant in the service', 'constant.plain'),
    row('bare node:http with the guards', 'guarded.plain'),
    row('bare node:http', 'bare.plain'),
    row('the service, gzip', 'service.gzip'),
    row('a constant in the service, gzip', 'constant.gzip'),
    row('bare node:http with the guards, gzip', 'guarded.gzip'),
    row('bare node:http, gzip', 'bare.gzip'),
  ];
  const against = "responses a second against a bare server with the guards' work";
  return {
    title: 'Cached: the same videos again',
    tables: [{ title: 'Speed', columns: ['', 'responses/s', 'CPU ms a response'], rows }],
    goals: [
      goal(against, ratio('plain'), { atLeast: 0.75 }),
      goal(`${against}, gzip`, ratio('gzip'), { atLeast: 0.5 }),
      goal(`peak memory over idle with ${SLOW_READERS} slow readers`, median(memory), { atMost: 150, unit: ' MB' }),
    ],
  };
}
