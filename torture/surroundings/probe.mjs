// Loaded into a tortured service: tells over IPC what it holds, so that a leak can be seen from outside, sets its clock, and
// lets the clock of its pauses and lives go forward, so that nobody has to wait for them.
if (process.send) {
  let skippedMs = 0;
  const now = performance.now.bind(performance);
  performance.now = () => now() + skippedMs;
  process.on('message', ({ probe, offsetMs, ms }) => {
    if (probe === 'clock') {
      setClock(offsetMs);
      process.send({ probe });
      return;
    }
    if (probe === 'skip') {
      skippedMs += ms;
      process.send({ probe });
      return;
    }
    if (probe !== 'resources') return;
    globalThis.gc?.();
    const held = {};
    for (const name of process.getActiveResourcesInfo()) held[name] = (held[name] ?? 0) + 1;
    const { rss, heapUsed, external } = process.memoryUsage();
    const peakRss = process.resourceUsage().maxRSS * 1024;
    process.send({ probe, held, rss, peakRss, heapUsed, external });
  });
  // The channel must not keep the service alive, and neither may it live without the torture.
  process.channel.unref();
  process.on('disconnect', () => process.exit(99));
}

const RealDate = Date;

/** All that a program of Node can see of the time of day comes from `Date`; what it measures does not depend on it. */
function setClock(offsetMs) {
  globalThis.Date = class Date extends RealDate {
    constructor(...given) {
      super(...(given.length === 0 ? [RealDate.now() + offsetMs] : given));
    }
    static now() {
      return RealDate.now() + offsetMs;
    }
  };
}
