// Loaded into a service under test: advances its monotonic clock, so that the tests need not wait for pauses and expiry.
if (process.send) {
  let skippedMs = 0;
  const now = performance.now.bind(performance);
  performance.now = () => now() + skippedMs;
  process.on('message', ({ ms }) => {
    skippedMs += ms;
    process.send({ skippedMs });
  });
  // The channel must not keep the service alive, and the service must not outlive the chaos tests.
  process.channel.unref();
  process.on('disconnect', () => process.exit(99));
}
