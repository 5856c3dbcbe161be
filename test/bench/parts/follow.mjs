import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeYoutube, startService } from '../environment.mjs';
import { goal, median } from '../figures.mjs';

const ADMIN_TOKEN = 'admin-token-of-the-follow-bench-0123456789';
const ORGANIZATIONS = 100;
const CHECK_MINUTES = 60;
/** Of each generated channel. */
const VIDEOS = 25;
const CONNECTIONS = 16;
const SAMPLE_MS = 5_000;
const WAIT_MS_MAX = 600_000;

/** How many subscriptions there are in all, and for how long they are measured. */
const SIZES = [
  { subscriptions: 1_000, seconds: 120, cpuPercentMax: 3 },
  { subscriptions: 10_000, seconds: 240, cpuPercentMax: 30 },
];
const QUICK_SIZES = [
  { subscriptions: 500, seconds: 30, cpuPercentMax: 3 },
  { subscriptions: 1_000, seconds: 30, cpuPercentMax: 30 },
];
/** A check that is running at the end of the measurement has sent its request. */
const REQUESTS_MAX = 1.05;
/** Pages and channels are cached for a while, so the memory of a service that has just started grows. */
const GROWTH_MB_MAX = 30;

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
  const growthMb = median(memoryMb.slice(-third)) - median(memoryMb.slice(0, third));
  return { cpuPercent: (100 * cpuSeconds) / seconds, requests, memoryMb: median(memoryMb), growthMb };
}

async function residentMb(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

/** Makes an organization on the Pro plan, and a key for it. */
async function makeOrganization(service) {
  const { id } = await request(service, ADMIN_TOKEN, '/admin/organizations', { name: 'Follow', plan: 'pro' });
  return (await request(service, ADMIN_TOKEN, `/admin/organizations/${id}/keys`, {})).key;
}

/** Creates the subscriptions from one number to another, of the organizations in turn, to a channel each. */
async function subscribe(service, keys, from, to) {
  let next = from;
  const work = async () => {
    while (next < to) {
      const number = next++;
      const channel = `@${VIDEOS}-videos-no-${number + 1}`;
      const body = { channel, checkMinutes: CHECK_MINUTES };
      await request(service, keys[number % keys.length], '/subscriptions', body);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
}

/** Waits until each subscription was checked once. */
async function untilChecked(service, keys) {
  const endMs = performance.now() + WAIT_MS_MAX;
  for (const key of keys) {
    while ([...(await checkTimes(service, [key])).values()].some((at) => at === null)) {
      if (performance.now() > endMs) throw new Error('The first checks are not done');
      await sleep(500);
    }
  }
}

/** When each subscription was checked last. */
async function checkTimes(service, keys) {
  const times = new Map();
  for (const key of keys) {
    let after = '';
    do {
      const page = await request(service, key, `/subscriptions?limit=100${after}`);
      for (const { id, checkedAt, state } of page.subscriptions) {
        if (state !== 'active') throw new Error(`${id} is ${state}`);
        times.set(id, checkedAt);
      }
      after = page.next === null ? undefined : `&after=${page.next}`;
    } while (after !== undefined);
  }
  return times;
}

function countChanges(before, after) {
  return [...after].filter(([id, at]) => before.get(id) !== at).length;
}

async function request({ port }, key, path, body) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

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
            ...[cpuPercent, ((cpuPercent - idle.cpuPercent) * seconds * 10) / checks, memoryMb],
          ]),
        ],
      },
    ],
    goals: measured.flatMap(({ subscriptions, checks, requests, cpuPercent, cpuPercentMax, growthMb }) => [
      goal(`CPU of ${subscriptions} subscriptions, of one core`, cpuPercent, { atMost: cpuPercentMax, unit: ' %' }),
      goal('requests to the platform a check', requests / checks, { atMost: REQUESTS_MAX }),
      goal('growth of the memory while it was measured', growthMb, { atMost: GROWTH_MB_MAX, unit: ' MB' }),
    ]),
  };
}
