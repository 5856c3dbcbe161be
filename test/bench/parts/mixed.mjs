import { setTimeout as sleep } from 'node:timers/promises';
import { goal, median, spread } from '../figures.mjs';
import { startService, startFakeYoutube } from '../environment.mjs';
import { callService } from './call.mjs';
import { LATENCY_MS, WARM_UP } from './cold.mjs';

const CALLERS = 10;
const SMALL_ALONE = 8;
const EVERY_MS = 1_000;

/** Ten callers with a hundred videos each, and one who wants a single video now and then. Nothing is in the cache. */
export async function mixed(bench) {
  const videos = bench.quick ? 20 : 100;
  // Fewer cues than elsewhere, so that the fake YouTube can cache the texts of all ten channels.
  const cues = bench.quick ? 100 : 1_000;
  const large = Array.from({ length: CALLERS }, (_, caller) => ({ videos, cues: cues + caller }));
  const one = (index) => ({ videos: 1, cues: cues + 100 + index });
  const fakeYoutube = await startFakeYoutube();
  try {
    const runs = [];
    for (let run = 0; run <= Math.min(bench.runs, 3); run += 1) {
      // The first one lets the fake YouTube write its texts.
      const latencyMs = run === 0 ? 0 : LATENCY_MS;
      bench.say(`mixed: run ${run}`);
      const figures = await measure(bench, fakeYoutube, { large, one, latencyMs });
      if (run > 0) runs.push(figures);
    }
    return report({ videos, cues }, runs);
  } finally {
    await fakeYoutube.stop();
  }
}

async function measure(bench, fakeYoutube, { large, one, latencyMs }) {
  const service = await startService(bench.folder, {
    ...{ DATABASE_URL: bench.databaseUrl, YOUTUBE_BASE_URL: fakeYoutube.url, CACHE_MAX_MEGABYTES: '1024' },
  });
  try {
    await fakeYoutube.setLatency(0);
    await callService(bench, service, WARM_UP);
    await fakeYoutube.setLatency(latencyMs);
    let asked = 0;
    const askOne = async () => (await callService(bench, service, one(asked++))).ms;
    const alone = [];
    for (let call = 0; call < SMALL_ALONE; call += 1) {
      alone.push(await askOne());
      await sleep(latencyMs);
    }
    const startedAt = performance.now();
    let done = false;
    const all = Promise.all(large.map((size) => callService(bench, service, size))).finally(() => (done = true));
    const beside = [];
    while (!done) {
      await sleep(Math.min(EVERY_MS, 10 * latencyMs + 20));
      if (!done) beside.push(await askOne());
      await sleep(Math.max(0, EVERY_MS - 10 * latencyMs));
    }
    await all;
    return { alone, beside, seconds: (performance.now() - startedAt) / 1000 };
  } finally {
    await service.stop();
  }
}

function report({ videos, cues }, runs) {
  const alone = runs.flatMap((run) => run.alone);
  const beside = runs.flatMap((run) => run.beside);
  const row = (label, all) => [label, all.length, median(all), ...spread(all)];
  return {
    title: 'Mixed: one small caller among ten large ones',
    text: `Ten callers of limit=${videos} (${cues} cues a video) and one of limit=1 every second, all cold, ${LATENCY_MS} ms a request, 16 requests at a time over all of them.`,
    tables: [
      {
        title: 'The small call',
        columns: ['', 'calls', 'median ms', 'least', 'most'],
        rows: [row('alone', alone), row('beside the ten', beside)],
      },
    ],
    goals: [goal('median beside the ten against alone', median(beside) / median(alone), { atMost: 2 })],
    notes: [`The ten take ${median(runs.map((run) => run.seconds)).toFixed(1)} s.`],
    charts: [],
  };
}
