// Loaded into a service under test: advances its monotonic clock, so that the tests need not wait for pauses and expiry, and
// collects its garbage.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

if (process.send) {
  let skippedMs = 0;
  const now = performance.now.bind(performance);
  performance.now = () => now() + skippedMs;
  process.on('message', ({ ms }) => {
    if (ms === undefined) {
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc');
      collect();
      // What has a finalizer is freed by the second collection.
      setImmediate(() => {
        collect();
        process.send({ arrayBufferBytes: process.memoryUsage().arrayBuffers });
      });
      return;
    }
    skippedMs += ms;
    process.send({ skippedMs });
  });
  // The channel must not keep the service alive, and the service must not outlive the chaos tests.
  process.channel.unref();
  process.on('disconnect', () => process.exit(99));
}
