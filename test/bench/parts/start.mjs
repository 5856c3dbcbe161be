import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { goal, median, sharesOf, spread } from '../figures.mjs';
import { startService } from '../environment.mjs';

/** From `node dist/main.js` to the first 200 of /health/ready, which needs the database. */
export async function start(bench) {
  const dataDir = join(bench.folder, 'embedded');
  await mkdir(dataDir);
  const ways = {
    DATABASE_URL: { DATABASE_URL: bench.databaseUrl },
    'embedded, started before': { DATA_DIR: dataDir },
  };
  const once = async (environment) => {
    const service = await startService(bench.folder, environment);
    await service.stop();
    return service.startMs;
  };
  const first = await once(ways['embedded, started before']);
  const runs = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let run = 0; run < bench.runs; run += 1) {
    bench.say(`start: run ${run + 1}`);
    for (const [name, environment] of Object.entries(ways)) runs[name].push(await once(environment));
  }
  return {
    title: 'Start',
    text: 'From starting the process to the first 200 of /health/ready, polled every 5 ms.',
    tables: [
      {
        title: 'Time to the first 200',
        columns: ['', 'median ms', 'least', 'most'],
        rows: [
          ...Object.entries(runs).map(([name, all]) => [name, median(all), ...spread(all)]),
          ['embedded, first time ever', first, first, first],
        ],
      },
    ],
    goals: [goal('with DATABASE_URL', median(runs.DATABASE_URL), { atMost: 800, unit: ' ms' })],
    profile: await profileOf(bench),
    profileOf: 'with DATABASE_URL, from the first import on',
    charts: [],
  };
}

async function profileOf(bench) {
  const service = await startService(bench.folder, { DATABASE_URL: bench.databaseUrl, BENCH_PROFILE_START: '1' });
  const { profile } = await service.program.ask({ probe: 'profileStop' });
  await service.stop();
  return sharesOf(profile);
}
