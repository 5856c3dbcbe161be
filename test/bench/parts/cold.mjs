import { goal, medians } from '../figures.mjs';
import { Program } from '../processes.mjs';
import { startService, startFakeYoutube } from '../environment.mjs';
import { callService } from './call.mjs';

const LATENCY_MS = 50;
/** Read before anything is measured, by every program alike, so that none is measured while V8 still translates it. */
const WARM_UP = { videos: 10, cues: 1_499 };

const SERVICE = 'the service';
const TIGHT = 'tight script';
const PROGRAMS = [
  { name: SERVICE },
  { name: TIGHT, file: 'tight-script.mjs' },
  { name: 'youtubei.js, one after another', file: 'youtubei.mjs', args: ['sequential'], runsMax: 3 },
  { name: 'youtubei.js, all at once', file: 'youtubei.mjs', args: ['all'] },
  { name: 'youtube-transcript-plus, 16 requests at a time', file: 'youtube-transcript-plus.mjs', atOnce: 16 },
];

/** A program that collects a channel's transcripts: `collect(channel)` returns `{ ms, firstEntryMs? }`. */
async function start(bench, { name, file, args = [], atOnce = Infinity }, fakeYoutube) {
  if (file === undefined) {
    const service = await startService(bench.folder, {
      DATABASE_URL: bench.databaseUrl,
      YOUTUBE_BASE_URL: fakeYoutube.url,
    });
    const collect = (channel) => callService(bench, service, channel);
    return { program: service.program, collect, stop: service.stop };
  }
  const env = {
    ...process.env,
    NODE_ENV: 'production',
    FAKE_YOUTUBE_URL: fakeYoutube.url,
    REQUESTS_AT_ONCE: String(atOnce),
  };
  const program = new Program(name, [`test/bench/programs/${file}`, ...args], { env });
  await Promise.race([program.ready, program.ended.then(() => Promise.reject(new Error(`${name} did not start`)))]);
  const collect = async (channel) => {
    const found = await program.ask({ collect: channel });
    if (found.videos !== channel.videos || found.cues !== channel.videos * channel.cues) {
      throw new Error(`${name} found ${found.cues} cues in ${found.videos} videos`);
    }
    return found;
  };
  return { program, collect, stop: () => program.stop() };
}

/** One run of one program: a process of its own, warmed up, and each size once. */
async function run(bench, program, fakeYoutube, sizes, latencyMs) {
  await fakeYoutube.setLatency(0);
  const started = await start(bench, program, fakeYoutube);
  try {
    await started.collect(WARM_UP);
    await fakeYoutube.setLatency(latencyMs);
    const figures = new Map();
    for (const size of sizes) {
      const before = await fakeYoutube.requestCount();
      const { value, cpuSeconds, peakMb, loopP99Ms } = await started.program.measure(() => started.collect(size));
      if (value.cached > 0) throw new Error('A cold call found something in the cache');
      const requests = (await fakeYoutube.requestCount()) - before;
      const { ms, firstEntryMs } = value;
      figures.set(size.videos, {
        seconds: ms / 1000,
        ...(firstEntryMs !== undefined && { firstEntryMs }),
        cpuSeconds,
        peakMb,
        loopP99Ms,
        requests,
      });
    }
    return figures;
  } finally {
    await started.stop();
  }
}

export async function cold(bench) {
  const cues = bench.quick ? 300 : 1_500;
  const sizes = (bench.quick ? [5, 20] : [25, 100]).map((videos) => ({ videos, cues }));
  const fakeYoutubes = new Map();
  const runs = new Map(PROGRAMS.map(({ name }) => [name, []]));
  try {
    for (const program of PROGRAMS) {
      const key = program.file ?? program.name;
      if (!fakeYoutubes.has(key)) fakeYoutubes.set(key, await startFakeYoutube());
      await run(bench, program, fakeYoutubes.get(key), sizes, 0);
    }
    for (let round = 0; round < bench.runs; round += 1) {
      for (const program of PROGRAMS) {
        if (round >= (program.runsMax ?? Infinity)) continue;
        bench.say(`cold: run ${round + 1} of ${program.name}`);
        const fakeYoutube = fakeYoutubes.get(program.file ?? program.name);
        runs.get(program.name).push(await run(bench, program, fakeYoutube, sizes, LATENCY_MS));
      }
    }
    return report(sizes, runs);
  } finally {
    for (const fakeYoutube of fakeYoutubes.values()) await fakeYoutube.stop();
  }
}

function report(sizes, runs) {
  const of = (name, { videos }) => medians(runs.get(name).map((figures) => figures.get(videos)));
  const goals = sizes.flatMap((size) => {
    const [ours, tight] = [of(SERVICE, size), of(TIGHT, size)];
    const best = Math.min(...PROGRAMS.slice(2).map(({ name }) => of(name, size).seconds));
    const at = `${size.videos} videos`;
    return [
      goal(`${at}: wall time against the tight script`, ours.seconds / tight.seconds, { atMost: 1.12 }),
      goal(`${at}: wall time against the best library`, ours.seconds / best, { atMost: 0.9 }),
      goal(`${at}: CPU against the tight script`, ours.cpuSeconds / tight.cpuSeconds, { atMost: 1.4 }),
      goal(`${at}: first entry, in round trips of ${LATENCY_MS} ms`, ours.firstEntryMs / LATENCY_MS, { atMost: 5 }),
      goal(`${at}: event-loop delay p99`, ours.loopP99Ms, { atMost: 15, unit: ' ms' }),
    ];
  });
  const tables = sizes.map((size) => ({
    title: `${size.videos} videos of ${size.cues} cues`,
    columns: ['', 'wall s', 'CPU s', 'peak MB', 'requests'],
    rows: PROGRAMS.map(({ name }) => {
      const { seconds, cpuSeconds, peakMb, requests } = of(name, size);
      return [name, seconds, cpuSeconds, peakMb, requests];
    }),
  }));
  return { title: 'Cold: nothing in the cache', tables, goals };
}
