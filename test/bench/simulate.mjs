import { parseArgs } from 'node:util';
import { arrivalsAtRandom, randomFrom } from './simulation/random.mjs';
import { DEFAULTS, simulate } from './simulation/replica.mjs';

/*
 * What one replica serves, by calls a minute: how long calls wait and take, and which share of them the deadline cuts
 * short. It needs nothing but Node and takes some seconds. docs/scaling.md quotes it.
 */
const HELP = `Usage: npm run simulate -- [options]

  --concurrency N   UPSTREAM_CONCURRENCY; default ${DEFAULTS.slots}
  --latency-ms N    the median of a round trip to the platform; default ${DEFAULTS.latencySeconds * 1000}
  --spread N        the spread of its logarithm: 0 makes all alike, 0.5 gives one in twenty 2.3 times the median; default ${DEFAULTS.latencySigma}
  --videos N        of a call; default ${DEFAULTS.videos}
  --cpu-ms N        of the process for a video that is fetched; default ${DEFAULTS.cpuSecondsPerVideo * 1000}
  --deadline N      REQUEST_DEADLINE_SECONDS; default ${DEFAULTS.deadlineSeconds}
  --minutes N       that are simulated for each line; default 20
  --seed N          default ${DEFAULTS.seed}
`;
const LOADS = [0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.1, 1.25];
const COLD_SHARES = [1, 0.5, 0.2, 0.05];
/** A replica serves a load when this share of calls is complete and takes no longer than this. */
const GOOD = { shareInTime: 0.999, p95Seconds: 15 };

function readSettings() {
  const options = ['concurrency', 'latency-ms', 'spread', 'videos', 'cpu-ms', 'deadline', 'minutes', 'seed'];
  const { values } = parseArgs({
    options: { help: { type: 'boolean' }, ...Object.fromEntries(options.map((name) => [name, { type: 'string' }])) },
  });
  const given = (name, otherwise) => (values[name] === undefined ? otherwise : Number(values[name]));
  const settings = {
    seed: given('seed', DEFAULTS.seed),
    slots: given('concurrency', DEFAULTS.slots),
    latencySeconds: given('latency-ms', DEFAULTS.latencySeconds * 1000) / 1000,
    latencySigma: given('spread', DEFAULTS.latencySigma),
    videos: given('videos', DEFAULTS.videos),
    cpuSecondsPerVideo: given('cpu-ms', DEFAULTS.cpuSecondsPerVideo * 1000) / 1000,
    deadlineSeconds: given('deadline', DEFAULTS.deadlineSeconds),
    minutes: given('minutes', 20),
  };
  if (values.help || !Object.values(settings).every((value) => value >= 0) || settings.slots < 1) {
    process.stdout.write(HELP);
    process.exit(values.help ? 0 : 2);
  }
  return settings;
}

const percentile = (values, share) =>
  [...values].sort((one, other) => one - other)[Math.floor(share * (values.length - 1))] ?? 0;

/** Calls per minute that saturate the slots or the thread. */
function capacity({ slots, latencySeconds, latencySigma, videos, cpuSecondsPerVideo }, coldShare) {
  const { channelRequests, sideRequests, videoRequests, cpuSecondsPerCall, cpuSecondsCached } = DEFAULTS;
  const requests = channelRequests + sideRequests + videos * videoRequests;
  const meanSeconds = latencySeconds * Math.exp(latencySigma ** 2 / 2);
  const bySlots = (60 * slots) / (coldShare * requests * meanSeconds);
  const cpuSeconds = coldShare * (cpuSecondsPerCall + videos * cpuSecondsPerVideo) + (1 - coldShare) * cpuSecondsCached;
  return { bySlots, byThread: 60 / cpuSeconds, least: Math.min(bySlots, 60 / cpuSeconds) };
}

function measure(settings, callsPerMinute, coldShare, minutes = settings.minutes) {
  const arrivals = arrivalsAtRandom(randomFrom(settings.seed), callsPerMinute / 60, minutes * 60);
  const result = simulate({ ...settings, coldShare, arrivals });
  // The first minute starts idle and is excluded.
  const calls = result.calls.filter(({ arrivedAt }) => arrivedAt >= 60);
  const seconds = calls.map((call) => call.seconds);
  return {
    ...{ p50: percentile(seconds, 0.5), p95: percentile(seconds, 0.95), p99: percentile(seconds, 0.99) },
    waitP95: percentile(result.waits, 0.95),
    cut: calls.filter(({ late }) => late > 0).length / Math.max(1, calls.length),
    lost: calls.reduce((sum, { late }) => sum + late, 0) / Math.max(1, settings.videos * calls.length),
    slotsBusy: result.slotsBusy,
    threadBusy: result.threadBusy,
  };
}

/** The most calls a minute that are served well, to about a fiftieth. */
function mostServed(settings, coldShare) {
  let [low, high] = [0, 1.2 * capacity(settings, coldShare).least];
  const minutes = Math.min(10, settings.minutes);
  while (high - low > high / 50) {
    const middle = (low + high) / 2;
    const { cut, p95 } = measure(settings, middle, coldShare, minutes);
    if (cut <= 1 - GOOD.shareInTime && p95 <= GOOD.p95Seconds) low = middle;
    else high = middle;
  }
  return low;
}

function print(columns, rows) {
  const lines = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  for (const line of lines) {
    process.stdout.write(`${line.map((cell, column) => cell.padStart(widths[column])).join('  ')}\n`);
  }
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const settings = readSettings();
const { least } = capacity(settings, 1);
process.stdout.write(
  `One replica: ${settings.slots} slots, ${settings.latencySeconds * 1000} ms a round trip, ${settings.videos} videos a call, all of them cold.\n` +
    `Slots or thread are full at ${least.toFixed(1)} calls a minute.\n\n`,
);
print(
  ['calls/min', 'of full', 'p50 s', 'p95 s', 'p99 s', 'slot wait p95 s', 'calls cut', 'videos cut', 'slots', 'thread'],
  LOADS.map((load) => {
    const found = measure(settings, load * least, 1);
    const times = [found.p50, found.p95, found.p99].map((seconds) => seconds.toFixed(1));
    const shares = [found.cut, found.lost, found.slotsBusy, found.threadBusy].map(percent);
    return [(load * least).toFixed(1), percent(load), ...times, found.waitP95.toFixed(2), ...shares];
  }),
);
process.stdout.write(
  `\nThe most that is served well: ${percent(GOOD.shareInTime)} of the calls whole, ${GOOD.p95Seconds} s at the 95th percentile.\n\n`,
);
print(
  ['cold', 'calls/min', 'slots full at', 'thread full at'],
  COLD_SHARES.map((coldShare) => {
    const { bySlots, byThread } = capacity(settings, coldShare);
    const amounts = [mostServed(settings, coldShare), bySlots, byThread].map((calls) => calls.toFixed(0));
    return [percent(coldShare), ...amounts];
  }),
);
