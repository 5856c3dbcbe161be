import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './figures.mjs';
import { killAll, stopAll } from './processes.mjs';
import { arrivalsAtRandom, randomFrom } from './simulation/random.mjs';
import { simulate } from './simulation/replica.mjs';
import { makeFolder, makeKey, openDatabase, startService, startFakeYoutube } from './environment.mjs';

/*
 * Validates the simulation: the service itself is called at the same random times, for channels that
 * are not cached, with a constant round trip to the fake YouTube, and both results are printed. The simulation is
 * given the CPU time of a call and the round trip of a single call; it has to derive the rest.
 */
const VIDEOS = 25;
const CUES = 300;
const SLOTS = 16;
const LATENCY_SECONDS = 0.4;
/** Sequential calls, which measure the actual round trip. */
const ALONE = 7;

const percentile = (values, share) =>
  [...values].sort((one, other) => one - other)[Math.floor(share * (values.length - 1))];

async function call(service, key, cues) {
  const startedAt = performance.now();
  const response = await fetch(`http://127.0.0.1:${service.port}/channels/@bench-${VIDEOS}x${cues}/transcripts`, {
    headers: { Authorization: `Bearer ${key}` },
  });
  const { summary } = await response.json();
  if (summary?.total !== VIDEOS) throw new Error(`A call returned ${response.status}: ${JSON.stringify(summary)}`);
  return { seconds: (performance.now() - startedAt) / 1000, late: summary.failed };
}

async function main() {
  const { values } = parseArgs({ options: { 'per-second': { type: 'string' }, seconds: { type: 'string' } } });
  const [perSecond, seconds] = [Number(values['per-second'] ?? 0.5), Number(values.seconds ?? 90)];
  const arrivals = arrivalsAtRandom(randomFrom(1), perSecond, seconds);
  process.on('exit', killAll);
  const folder = await makeFolder();
  const database = await openDatabase(folder.path);
  try {
    const key = await makeKey(database.url);
    const fakeYoutube = await startFakeYoutube();
    const env = { DATABASE_URL: database.url, YOUTUBE_BASE_URL: fakeYoutube.url, UPSTREAM_CONCURRENCY: String(SLOTS) };
    // The fake YouTube renders its texts for a first process, so that later round trips have the configured length.
    const first = await startService(folder.path, env);
    for (let channel = 0; channel < ALONE + arrivals.length; channel += 1) await call(first, key, CUES + channel);
    await first.stop();
    const service = await startService(folder.path, env);
    for (let warm = 1; warm <= 5; warm += 1) await call(service, key, CUES - warm);
    await fakeYoutube.setLatency(LATENCY_SECONDS * 1000);
    const requestsBefore = await fakeYoutube.requestCount();
    const alones = [];
    for (let channel = 0; channel < ALONE; channel += 1)
      alones.push((await call(service, key, CUES + channel)).seconds);
    const requests = ((await fakeYoutube.requestCount()) - requestsBefore) / ALONE;
    const alone = median(alones);

    const startedAt = performance.now();
    const { value: real, cpuSeconds } = await service.program.measure(() =>
      Promise.all(
        arrivals.map(async (at, index) => {
          await sleep(at * 1000 - (performance.now() - startedAt));
          return call(service, key, CUES + ALONE + index);
        }),
      ),
    );
    const channelRequests = 2;
    const given = {
      ...{ arrivals, slots: SLOTS, videos: VIDEOS, latencySeconds: LATENCY_SECONDS, latencySigma: 0 },
      ...{ channelRequests, sideRequests: requests - 2 * VIDEOS - channelRequests },
      ...{ cpuSecondsPerVideo: cpuSeconds / arrivals.length / VIDEOS, cpuSecondsPerCall: 0 },
    };
    const aloneSimulated = (settings) => simulate({ ...settings, arrivals: [0] }).calls[0].seconds;
    // Sending and reading it are a part of a round trip.
    const atNoLatency = aloneSimulated({ ...given, latencySeconds: 0 });
    const latencySeconds = (LATENCY_SECONDS * (alone - atNoLatency)) / (aloneSimulated(given) - atNoLatency);
    const settings = { ...given, latencySeconds };
    const simulated = simulate(settings);
    const rows = [
      ['measured', alone, real],
      ['simulated', aloneSimulated(settings), simulated.calls],
    ];
    process.stdout.write(
      `${arrivals.length} calls of ${VIDEOS} videos in ${seconds} s, ${requests} requests a call of ${(1000 * latencySeconds).toFixed(0)} ms, ` +
        `slots ${(100 * simulated.slotsBusy).toFixed(0)} % busy, ${((1000 * cpuSeconds) / arrivals.length / VIDEOS).toFixed(1)} ms CPU a video\n` +
        '           one alone s  median s  p90 s  p95 s  greatest s  videos cut\n',
    );
    for (const [name, one, calls] of rows) {
      const all = calls.map(({ seconds }) => seconds);
      const figures = [one, median(all), percentile(all, 0.9), percentile(all, 0.95), Math.max(...all)];
      const cut = calls.reduce((sum, { late }) => sum + late, 0);
      process.stdout.write(`${name.padEnd(9)}  ${figures.map((figure) => figure.toFixed(2)).join('  ')}  ${cut}\n`);
    }
    await service.stop();
    await fakeYoutube.stop();
  } finally {
    await stopAll();
    await database.close();
    await folder.remove();
  }
}

await main();
