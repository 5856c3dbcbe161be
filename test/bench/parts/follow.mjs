import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube, startService } from '../environment.mjs';
import { goal, median } from '../figures.mjs';
import {
  ADMIN_TOKEN,
  CHECK_MINUTES,
  checkTimes,
  countChanges,
  makeOrganization,
  subscribe,
  untilChecked,
} from '../subscriptions.mjs';

const ORGANIZATIONS = 100;
const SAMPLE_MS = 5_000;

/** How many subscriptions there are in all, and for how long they are measured. */
const SIZES = [
  { subscriptions: 1_000, seconds: 120, cpuPercentMax: 3 },
  { subscriptions: 10_000, seconds: 240, cpuPercentMax: 30 },
];
/** So few that the pace of lists lets them all be checked at once for the first time. */
const QUICK_SIZES = [
  { subscriptions: 4, seconds: 5, cpuPercentMax: 3 },
  { subscriptions: 8, seconds: 5, cpuPercentMax: 30 },
];
/** A check that is running at the end of the measurement has sent its request. */
const REQUESTS_MAX = 1.05;
/** Of fewer checks that one request is more than the bound allows. */
const CHECKS_MIN = 20;
/** Pages and channels are cached for a while, so the memory of a service that has just started grows. */
const GROWTH_MB_MAX = 30;
/** Fewer samples of the memory show the garbage collector, and no growth. */
const SAMPLES_MIN = 12;

/**
 * Subscriptions to a channel each, of which none has anything new. Nothing is accelerated: checks come at the default
 * interval, spread over it, so that a few minutes have their share of them. What the service costs without any
 * subscription is measured before and not subtracted.
 */
export async function follow(bench) {
  const sizes = bench.quick ? QUICK_SIZES : SIZES;
  const fakeYoutube = await startFakeYoutube();
  try {
    const service = await startService(bench.folder, {
      DATABASE_URL: bench.databaseUrl,
      YOUTUBE_BASE_URL: fakeYoutube.url,
      ADMIN_TOKEN,
      SUBSCRIPTIONS_PER_ORGANIZATION: '10000',
    });
    try {
      const keys = [];
      while (keys.length < ORGANIZATIONS) keys.push(await makeOrganization(service));
      bench.say('follow: no subscriptions');
      const idle = await measure(service, fakeYoutube, sizes[0].seconds / 3);
      const rows = [];
      let made = 0;
      for (const { subscriptions, seconds, cpuPercentMax } of sizes) {
        bench.say(`follow: ${subscriptions} subscriptions, created and checked for the first time`);
        await subscribe(service, keys, made, subscriptions);
        made = subscriptions;
        await untilChecked(service, keys);
        bench.say(`follow: ${subscriptions} subscriptions, measured for ${seconds} seconds`);
        const from = await checkTimes(service, keys);
        const measured = await measure(service, fakeYoutube, seconds);
        const checks = countChanges(from, await checkTimes(service, keys));
        rows.push({ subscriptions, seconds, cpuPercentMax, checks, ...measured });
      }
      return report(idle, rows);
    } finally {
      await service.stop();
    }
  } finally {
    await fakeYoutube.stop();
  }
}

/** The service left alone for some seconds: its CPU, its requests to the fake YouTube, and its memory from time to time. */
async function measure({ program }, fakeYoutube, seconds) {
  await fakeYoutube.reset();
  const memoryMb = [];
  const { cpuSeconds } = await program.measure(async () => {
    const endMs = performance.now() + seconds * 1_000;
    while (performance.now() < endMs) {
      await sleep(Math.min(SAMPLE_MS, endMs - performance.now()));
      memoryMb.push(await residentMb(program.child.pid));
    }
  });
  const requests = await fakeYoutube.requestCount();
  const third = Math.ceil(memoryMb.length / 3);
  const isLong = memoryMb.length >= SAMPLES_MIN;
  const growthMb = isLong ? median(memoryMb.slice(-third)) - median(memoryMb.slice(0, third)) : NaN;
  return { cpuPercent: (100 * cpuSeconds) / seconds, requests, memoryMb: median(memoryMb), growthMb };
}

async function residentMb(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

/** NaN for a figure that so few checks do not show. */
const aCheck = (sum, checks) => (checks < CHECKS_MIN ? NaN : sum / checks);

function report(idle, measured) {
  return {
    title: 'Follow: channels without anything new',
    tables: [
      {
        title: `A check every ${CHECK_MINUTES} minutes`,
        columns: ['subscriptions', 'seconds', 'checks', 'expected', 'requests', 'CPU %', 'CPU ms a check', 'memory MB'],
        rows: [
          ['none', '', 0, 0, idle.requests, idle.cpuPercent, '', idle.memoryMb],
          ...measured.map(({ subscriptions, seconds, checks, requests, cpuPercent, memoryMb }) => [
            ...[subscriptions, seconds, checks, (subscriptions * seconds) / (CHECK_MINUTES * 60), requests],
            ...[cpuPercent, aCheck((cpuPercent - idle.cpuPercent) * seconds * 10, checks), memoryMb],
          ]),
        ],
      },
    ],
    goals: measured.flatMap(({ subscriptions, checks, requests, cpuPercent, cpuPercentMax, growthMb }) => [
      goal(`CPU of ${subscriptions} subscriptions, of one core`, cpuPercent, { atMost: cpuPercentMax, unit: ' %' }),
      goal('requests to the platform a check', aCheck(requests, checks), { atMost: REQUESTS_MAX }),
      goal('growth of the memory while it was measured', growthMb, { atMost: GROWTH_MB_MAX, unit: ' MB' }),
    ]),
  };
}
