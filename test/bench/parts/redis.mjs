import { medians, median } from '../figures.mjs';
import { startRedis, startFakeYoutube } from '../environment.mjs';
import { bothWays, startBoth } from './cached.mjs';
import { pathOf, smallLoad } from './call.mjs';
import { LATENCY_MS, runCold, SERVICE_PROGRAM } from './cold.mjs';

/** The same calls with Redis as the cache, beside memory in the same round. */
export async function redis(bench) {
  const server = await startRedis(bench.folder);
  if (!server) {
    bench.say('redis: neither redis-server nor valkey-server is installed; skipped');
    return null;
  }
  const size = { videos: bench.quick ? 20 : 100, cues: bench.quick ? 300 : 1_500 };
  const fakeYoutube = await startFakeYoutube();
  const caches = { memory: { REDIS_URL: '' }, redis: { REDIS_URL: server.url } };
  try {
    await runCold(bench, SERVICE_PROGRAM, fakeYoutube, [size], 0);
    const runs = { memory: [], redis: [] };
    for (let run = 0; run < Math.min(bench.runs, 3); run += 1) {
      for (const [name, environment] of Object.entries(caches)) {
        bench.say(`redis: ${name}, run ${run + 1}`);
        await server.flush();
        runs[name].push(await measure(bench, fakeYoutube, size, environment));
      }
    }
    return report(size, medians(runs.memory), medians(runs.redis), runs);
  } finally {
    await fakeYoutube.stop();
    await server.stop();
  }
}

async function measure(bench, fakeYoutube, size, environment) {
  const cold = (await runCold(bench, SERVICE_PROGRAM, fakeYoutube, [size], LATENCY_MS, environment)).get(size.videos);
  await fakeYoutube.setLatency(0);
  const { service, bare } = await startBoth(bench, fakeYoutube, size, environment);
  try {
    const seconds = bench.quick ? 1 : 2;
    const figures = await bothWays(bench, { service, bare }, size, seconds);
    const one = { port: service.port, path: pathOf({ ...size, limit: 1 }), program: service.program };
    const small = await smallLoad(bench, one, seconds);
    return {
      ...{ coldSeconds: cold.seconds, coldCpu: cold.cpuSeconds, firstEntryMs: cold.firstEntryMs },
      ...{ plain: figures['service.plain'].perSecond, gzip: figures['service.gzip'].perSecond },
      ...{ plainCpuMs: figures['service.plain'].cpuMs, gzipCpuMs: figures['service.gzip'].cpuMs },
      ...{ small: small.perSecond, smallMs: small.medianMs },
    };
  } finally {
    await service.stop();
    await bare.stop();
  }
}

const ROWS = {
  coldSeconds: 'cold: wall s',
  coldCpu: 'cold: CPU s',
  firstEntryMs: 'cold: first entry after ms',
  plain: 'cached: answers/s',
  plainCpuMs: 'cached: CPU ms an answer',
  gzip: 'cached, gzip: answers/s',
  gzipCpuMs: 'cached, gzip: CPU ms an answer',
  small: 'cached, limit=1: requests/s',
  smallMs: 'cached, limit=1: median ms',
};

function report(size, memory, redisFigures, runs) {
  const ratio = (name) => median(runs.redis.map((run, index) => run[name] / runs.memory[index][name]));
  return {
    title: 'Redis as the cache',
    text: `${size.videos} videos of ${size.cues} cues. Redis runs on the same machine and shares its processors.`,
    tables: [
      {
        title: 'Memory and Redis',
        columns: ['', 'memory', 'Redis', 'Redis/memory'],
        rows: Object.entries(ROWS).map(([name, label]) => [label, memory[name], redisFigures[name], ratio(name)]),
      },
    ],
    goals: [],
    charts: [],
  };
}
