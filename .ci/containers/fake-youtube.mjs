// The fake YouTube listens on the loopback interface only; this forwards the container's port 4000 to it.
import { connect, createServer } from 'node:net';
import { startFakeYoutube } from '../../dist-tools/test/fake-youtube/fake-youtube.js';

await startFakeYoutube({ port: 4001, latencyMs: 40 });
createServer((near) => {
  const far = connect(4001, '127.0.0.1');
  const end = () => {
    near.destroy();
    far.destroy();
  };
  near.on('error', end);
  far.on('error', end);
  near.pipe(far).pipe(near);
}).listen(4000);
