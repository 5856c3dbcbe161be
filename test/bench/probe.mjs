/*
 * Loaded with --import into every measured program, ours and the others alike. It measures from within, when the bench
 * requests over IPC, and ends the program when the benchmark has ended.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 2;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let cpuAtStart = process.cpuUsage();
let rssAtStartMb = 0;

function statusMb(name) {
  const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return Number(kilobytes) / 1024;
}

const answers = {
  start() {
    try {
      // Sets the peak back to what is resident now; where that is forbidden the peak is the program's whole life's.
      writeFileSync('/proc/self/clear_refs', '5');
    } catch {
      /* see above */
    }
    rssAtStartMb = statusMb('VmRSS');
    cpuAtStart = process.cpuUsage();
    delay.enable();
    delay.reset();
    return {};
  },
  stop() {
    const { user, system } = process.cpuUsage(cpuAtStart);
    // What is recorded is the time between two ticks of a timer; what is beyond its period is delay.
    const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
    const measured = {
      cpuSeconds: (user + system) / 1e6,
      rssAtStartMb,
      peakMb: statusMb('VmHWM'),
      loopP99Ms: late(delay.percentile(99)),
    };
    delay.disable();
    return measured;
  },
};

if (process.send) {
  process.on('message', ({ probe, id }) => {
    if (probe !== undefined) process.send({ id, value: answers[probe]() });
  });
  process.on('disconnect', () => process.exit(1));
  process.channel.unref();
}
