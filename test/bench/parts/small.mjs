import { goal, median } from '../figures.mjs';
import { startFakeYoutube } from '../environment.mjs';
import { startConstant, startFilled, startGuarded, writeBody } from './cached.mjs';
import { pathOf, smallLoad } from './call.mjs';

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
    return report(runs);
  } finally {
    await fakeYoutube.stop();
  }
}

function report(runs) {
  const of = (name, figure) => median(runs.map((run) => run[name][figure]));
  const ratio = (ours) => median(runs.map((run) => run[ours].perSecond / run.sameBytes.perSecond));
  const row = (label, name) => [label, of(name, 'perSecond'), of(name, 'cpuMs')];
  const rows = [
    row('the service, limit=1', 'service'),
    row('the service, one video', 'video'),
    row('a constant of the same bytes', 'sameBytes'),
    row("bare node:http with the guards' work", 'guarded'),
  ];
  return {
    title: 'Cached, limit=1',
    tables: [{ title: 'Requests', columns: ['', 'requests/s', 'CPU ms a request'], rows }],
    goals: [
      goal('requests a second against a constant of the same bytes', ratio('service'), { atLeast: 0.5 }),
      goal('one video: requests a second against that constant', ratio('video'), { atLeast: 0.5 }),
    ],
  };
}
