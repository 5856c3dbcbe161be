import { goal, median } from '../figures.mjs';
import { startFakeYoutube } from '../environment.mjs';
import { LATENCY_MS, runCold, SERVICE_PROGRAM } from './cold.mjs';

/** Whether a video costs the same among many, and a cue the same in a long video. */
export async function growth(bench) {
  const cues = bench.quick ? 300 : 1_500;
  const byVideos = (bench.quick ? [5, 20] : [10, 30, 100]).map((videos) => ({ videos, cues }));
  const byCues = (bench.quick ? [100, 1_000] : [100, 1_000, 10_000]).map((count) => ({ videos: 16, cues: count }));
  const fakeYoutube = await startFakeYoutube();
  try {
    const measured = new Map();
    for (const size of [...byVideos, ...byCues]) {
      const runs = [];
      for (let run = 0; run <= Math.min(bench.runs, 2); run += 1) {
        bench.say(`growth: ${size.videos} videos of ${size.cues} cues, run ${run}`);
        // The first one lets the fake YouTube write its texts.
        const figures = (await runCold(bench, SERVICE_PROGRAM, fakeYoutube, [size], run === 0 ? 0 : LATENCY_MS)).get(
          size.videos,
        );
        if (run > 0) runs.push(figures);
      }
      measured.set(size, perVideo(size, runs));
    }
    return report(byVideos, byCues, measured);
  } finally {
    await fakeYoutube.stop();
  }
}

function perVideo({ videos }, runs) {
  const each = (name) => median(runs.map((run) => run[name])) / videos;
  return { ms: each('seconds') * 1000, cpuMs: each('cpuSeconds') * 1000, memoryMb: each('riseMb') };
}

const NAMES = { ms: 'time', cpuMs: 'CPU', memoryMb: 'memory' };

function report(byVideos, byCues, measured) {
  const table = (title, unit, sizes, of, scale) => ({
    title,
    columns: ['', `wall ms a ${unit}`, `CPU ms a ${unit}`, `MB a ${unit}`],
    rows: sizes.map((size) => {
      const { ms, cpuMs, memoryMb } = measured.get(size);
      return [of(size), ms * scale(size), cpuMs * scale(size), memoryMb * scale(size)];
    }),
  });
  const compare = (from, to, scale, what) =>
    Object.entries(NAMES).map(([figure, name]) =>
      goal(`${name} ${what}`, (measured.get(to)[figure] * scale(to)) / (measured.get(from)[figure] * scale(from)), {
        atMost: 1.2,
      }),
    );
  const one = () => 1;
  const thousand = ({ cues }) => 1_000 / cues;
  const [fewest, most] = [byVideos[0], byVideos.at(-1)];
  const [shortest, longest] = [byCues[0], byCues.at(-1)];
  return {
    title: 'Growth',
    text: `Cold calls, a fresh process for each. Each call has a fixed cost (resolving and listing the channel), so figures per video may fall; the goal is that they rise by at most a fifth. Memory is the peak above the resident memory before the call.`,
    tables: [
      table(`More videos, ${fewest.cues} cues each`, 'video', byVideos, ({ videos }) => `${videos} videos`, one),
      table(`Longer videos, ${shortest.videos} of them`, 'video', byCues, ({ cues }) => `${cues} cues`, one),
      table('The same by cues', '1,000 cues', byCues, ({ cues }) => `${cues} cues`, thousand),
    ],
    goals: [
      ...compare(fewest, most, one, `a video at ${most.videos} videos against ${fewest.videos}`),
      // Against the shortest, where a video's own cost is most of it, and against the next, where the cues are.
      ...[shortest, byCues.at(-2)].flatMap((shorter) =>
        compare(shorter, longest, thousand, `a cue at ${longest.cues} cues against ${shorter.cues}`),
      ),
    ],
    charts: [
      {
        ...{
          file: 'growth-videos.svg',
          title: `CPU a video, by videos in a call (${fewest.cues} cues each)`,
          unit: 'ms',
        },
        bars: byVideos.map((size) => ({ label: `${size.videos} videos`, value: measured.get(size).cpuMs, ours: true })),
      },
      {
        ...{ file: 'growth-cues.svg', title: 'CPU a 1,000 cues, by cues in a video', unit: 'ms' },
        bars: byCues.map((size) => ({
          label: `${size.cues} cues`,
          value: measured.get(size).cpuMs * thousand(size),
          ours: true,
        })),
      },
    ],
  };
}
