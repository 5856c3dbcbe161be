// Loaded into a tortured service: tells over IPC what it holds, so that a leak can be seen from outside.
if (process.send) {
  process.on('message', ({ probe }) => {
    if (probe !== 'resources') return;
    globalThis.gc?.();
    const held = {};
    for (const name of process.getActiveResourcesInfo()) held[name] = (held[name] ?? 0) + 1;
    const { rss, heapUsed, external } = process.memoryUsage();
    process.send({ probe, held, rss, heapUsed, external });
  });
  // The channel must not keep the service alive, and neither may it live without the torture.
  process.channel.unref();
  process.on('disconnect', () => process.exit(99));
}
