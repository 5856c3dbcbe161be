import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { goal, median } from '../figures.mjs';
import { load } from '../http-reader.mjs';
import { startService, startFakeYoutube } from '../environment.mjs';
import { callService, pathOf, request } from './call.mjs';

const CONNECTIONS = 2;
/** Of the callers of one video. */
const CONNECTIONS_SMALL = 16;
const SLOW_READERS = 50;

export async function cached(bench) {
  const size = { videos: bench.quick ? 20 : 100, cues: bench.quick ? 300 : 1_500 };
  const fakeYoutube = await startFakeYoutube();
  try {
    const speed = await measureSpeed(bench, fakeYoutube, size);
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

/** A service that has served a call once; `body` is its cached response. */
async function startFilled(bench, fakeYoutube, size) {
  const environment = { DATABASE_URL: bench.databaseUrl, YOUTUBE_BASE_URL: fakeYoutube.url };
  const service = await startService(bench.folder, environment);
  await callService(bench, service, size);
  const { body, cached: fromCache } = await callService(bench, service, size);
  if (fromCache !== size.videos) throw new Error('A second call was not cached');
  return { ...service, body };
}

async function measureSpeed(bench, fakeYoutube, size) {
  const seconds = bench.quick ? 1 : 3;
  const service = await startFilled(bench, fakeYoutube, size);
  const bodyFile = join(bench.folder, 'body.json');
  await writeFile(bodyFile, service.body);
  const startBeside = (name, environment) => {
    const main = `test/bench/programs/${name}.mjs`;
    return startService(bench.folder, { BODY_FILE: bodyFile, ...environment }, { name, main });
  };
  const environment = { DATABASE_URL: bench.databaseUrl, YOUTUBE_BASE_URL: fakeYoutube.url };
  const guarded = await startBeside('guarded-server', environment);
  const constant = await startBeside('constant-controller', environment);
  const ways = waysTo({ service, constant, guarded }, size);
  const headers = { Authorization: `Bearer ${bench.key}` };
  try {
    const runs = [];
    for (let run = 0; run <= bench.runs; run += 1) {
      if (run > 0) bench.say(`cached: run ${run}`);
      const figures = {};
      // One after the other, so that each has the machine to itself.
      for (const [name, { program, gzip, ...way }] of Object.entries(ways)) {
        const asked = { ...way, headers: { ...headers, ...(gzip && { 'Accept-Encoding': 'gzip' }) } };
        const { value, cpuSeconds } = await program.measure(() =>
          load({ ...asked, seconds: run === 0 ? seconds / 3 : seconds }),
        );
        figures[name] = { perSecond: value.perSecond, cpuMs: (cpuSeconds * 1000) / value.responses };
      }
      // The first one warms up.
      if (run > 0) runs.push(figures);
    }
    return runs;
  } finally {
    for (const server of [service, guarded, constant]) await server.stop();
  }
}

/** Every measured request, by the name of its row. */
function waysTo({ service, constant, guarded }, size) {
  const { videoId } = JSON.parse(service.body).results[0];
  const way = ({ port, program }, path, connections, gzip = false) => ({ port, program, path, connections, gzip });
  const whole = (server, path, gzip) => way(server, path, CONNECTIONS, gzip);
  const small = (server, path) => way(server, path, CONNECTIONS_SMALL);
  return {
    'the service': whole(service, pathOf(size)),
    'a constant in the service': whole(constant, '/constant/buffer'),
    'bare node:http with the guards': whole(guarded, '/'),
    'the service, gzip': whole(service, pathOf(size), true),
    'a constant in the service, gzip': whole(constant, '/constant/buffer', true),
    'bare node:http with the guards, gzip': whole(guarded, '/', true),
    'the service, limit=1': small(service, pathOf({ ...size, limit: 1 })),
    'the service, one video': small(service, `/videos/${videoId}/transcript`),
    'a constant in the service, limit=1': small(constant, '/constant/same-bytes?limit=1'),
    'bare node:http with the guards, limit=1': small(guarded, '/?limit=1'),
  };
}

/** The increase of memory while many clients read slowly, over its idle value. */
async function measureSlowReaders(bench, fakeYoutube, size) {
  const service = await startFilled(bench, fakeYoutube, size);
  try {
    await sleep(1_000);
    const { peakMb, rssAtStartMb } = await service.program.measure(() =>
      Promise.all(Array.from({ length: SLOW_READERS }, () => readSlowly(bench, service, size))),
    );
    return peakMb - rssAtStartMb;
  } finally {
    await service.stop();
  }
}

/** Reads slowly in pieces; after some seconds it reads fast, so that the benchmark ends. */
async function readSlowly(bench, service, size) {
  const slowUntil = performance.now() + (bench.quick ? 2_000 : 8_000);
  const response = await request(bench, service, size);
  if (response.statusCode !== 200) throw new Error(`A slow reader received ${response.statusCode}`);
  response.on('data', () => {
    if (performance.now() > slowUntil) return;
    response.pause();
    setTimeout(() => response.resume(), 250);
  });
  await finished(response);
}

function report(runs, memory) {
  const ratio = (ours, other) => median(runs.map((run) => run[ours].perSecond / run[other].perSecond));
  const rows = Object.keys(runs[0]).map((name) => [
    name,
    ...['perSecond', 'cpuMs'].map((figure) => median(runs.map((run) => run[name][figure]))),
  ]);
  const constant = 'a constant in the service, limit=1';
  return {
    title: 'Cached: the same videos again',
    tables: [{ title: 'Speed', columns: ['', 'responses/s', 'CPU ms a response'], rows }],
    goals: [
      goal(
        "responses a second against a bare server with the guards' work",
        ratio('the service', 'bare node:http with the guards'),
        { atLeast: 0.75 },
      ),
      goal('the same with gzip', ratio('the service, gzip', 'bare node:http with the guards, gzip'), { atLeast: 0.5 }),
      goal(`peak memory over idle with ${SLOW_READERS} slow readers`, median(memory), { atMost: 150, unit: ' MB' }),
      goal('limit=1: against a constant of the same bytes', ratio('the service, limit=1', constant), { atLeast: 0.5 }),
      goal('one video: against that constant', ratio('the service, one video', constant), { atLeast: 0.5 }),
    ],
  };
}
