import { goal, median } from '../figures.mjs';
import { startFakeYoutube } from '../environment.mjs';
import { startConstant, startFilled, startGuarded, writeBody } from './cached.mjs';
import { pathOf, SMALL_CONNECTIONS, smallLoad } from './call.mjs';

export async function small(bench) {
  const size = { videos: 100, cues: bench.quick ? 300 : 1_500, limit: 1 };
  const seconds = bench.quick ? 1 : 3;
  const fakeYoutube = await startFakeYoutube();
  try {
    const service = await startFilled(bench, fakeYoutube, size);
    await writeBody(bench, service.body);
    const constant = await startConstant(bench, fakeYoutube);
    const guarded = await startGuarded(bench);
    const { videoId } = JSON.parse(service.body).results[0];
    const paths = {
      service: { port: service.port, path: pathOf(size), program: service.program },
      video: { port: service.port, path: `/videos/${videoId}/transcript`, program: service.program },
      sameBytes: { port: constant.port, path: '/constant/same-bytes?limit=1', program: constant.program },
      guarded: { port: guarded.port, path: '/?limit=1', program: guarded.program },
      short: { port: constant.port, path: '/constant/short?limit=1', program: constant.program },
    };
    const runs = [];
    for (let run = 0; run <= bench.runs; run += 1) {
      bench.say(`small: run ${run}`);
      const figures = {};
      for (const [name, way] of Object.entries(paths)) {
        figures[name] = await smallLoad(bench, way, run === 0 ? seconds / 2 : seconds);
      }
      if (run > 0) runs.push(figures);
    }
    await service.stop();
    await constant.stop();
    await guarded.stop();
    return report(service.body.length, runs);
  } finally {
    await fakeYoutube.stop();
  }
}

function report(bodyBytes, runs) {
  const of = (name, figure) => median(runs.map((run) => run[name][figure]));
  const ratio = (name, ours = 'service') => median(runs.map((run) => run[ours].perSecond / run[name].perSecond));
  const row = (label, name) => [label, of(name, 'perSecond'), of(name, 'medianMs'), of(name, 'cpuMs')];
  const rows = [
    row('the service, limit=1', 'service'),
    row('the service, one video', 'video'),
    row('a constant of the same bytes', 'sameBytes'),
    row("bare node:http with the guards' work", 'guarded'),
    row('a constant of 11 bytes', 'short'),
  ];
  return {
    title: 'Cached, limit=1',
    text: `One video, as a channel\'s newest and by its ID, ${(bodyBytes / 1000).toFixed(0)} kB per response, over ${SMALL_CONNECTIONS} connections. The constants are returned by a Nest controller in the service itself, with the same guards, validation and log, but without a query for the quota. The bare server does the guards' work and reads the quota, with two queries for each request; the service shares those of concurrent calls, so that it can be faster. The constants gain more than the service from a newer Node.js, which lowers the ratio to them.`,
    tables: [{ title: 'Requests', columns: ['', 'requests/s', 'median ms', 'CPU ms a request'], rows }],
    goals: [
      goal('requests a second against a constant of the same bytes', ratio('sameBytes'), { atLeast: 0.5 }),
      goal('one video: requests a second against that constant', ratio('sameBytes', 'video'), { atLeast: 0.5 }),
    ],
    notes: [`Against a constant of 11 bytes: ${ratio('short').toFixed(2)}.`],
    charts: [
      {
        ...{ file: 'small.svg', title: 'Cached, limit=1', unit: 'requests/s' },
        bars: rows.map(([label, value], index) => ({ label, value, ours: index < 2 })),
      },
    ],
  };
}
