import { connect } from 'node:net';
import { load } from './http-reader.mjs';
import { killAll, stopAll } from './processes.mjs';
import { makeFolder, makeKey, openDatabase, startRedis, startService, startFakeYoutube } from './environment.mjs';

/*
 * The memory of a transcript in Redis, and the cost of a call for 25 cached videos for Redis and for the service:
 * npm run build && npm run build:tools && node test/bench/redis-share.mjs
 */
const VIDEOS = 25;
const CUES = 1_500;
const SECONDS = 5;

/** One of the figures of INFO. */
async function figure(url, name) {
  const { port } = new URL(url);
  const text = await new Promise((resolve, reject) => {
    let read = '';
    const socket = connect(Number(port), '127.0.0.1', () => socket.write('INFO everything\r\nQUIT\r\n'));
    socket
      .on('data', (data) => (read += String(data)))
      .once('end', () => resolve(read))
      .once('error', reject);
  });
  return Number(new RegExp(`^${name}:([0-9.]+)`, 'm').exec(text)?.[1]);
}

async function main() {
  process.on('exit', killAll);
  const folder = await makeFolder();
  const database = await openDatabase(folder.path);
  try {
    const key = await makeKey(database.url);
    const [fakeYoutube, redis] = [await startFakeYoutube(), await startRedis(folder.path)];
    if (!redis) throw new Error('Neither redis-server nor valkey-server is installed');
    const env = { DATABASE_URL: database.url, YOUTUBE_BASE_URL: fakeYoutube.url, REDIS_URL: redis.url };
    const service = await startService(folder.path, env);
    const path = `/channels/@bench-${VIDEOS}x${CUES}/transcripts`;
    const headers = { Authorization: `Bearer ${key}` };
    const before = await figure(redis.url, 'used_memory');
    await (await fetch(`http://127.0.0.1:${service.port}${path}`, { headers })).arrayBuffer();
    const bytes = (await figure(redis.url, 'used_memory')) - before;
    process.stdout.write(`Redis uses ${(bytes / VIDEOS / 1000).toFixed(1)} kB for a transcript of ${CUES} cues\n`);
    for (const [name, more] of [
      ['plain', {}],
      ['gzip', { 'Accept-Encoding': 'gzip' }],
    ]) {
      const cpu = async () => (await figure(redis.url, 'used_cpu_user')) + (await figure(redis.url, 'used_cpu_sys'));
      const cpuBefore = await cpu();
      const asked = { port: service.port, path, headers: { ...headers, ...more }, connections: 4, seconds: SECONDS };
      const { value, cpuSeconds } = await service.program.measure(() => load(asked));
      const calls = value.latencies.length;
      const ms = [cpuSeconds, (await cpu()) - cpuBefore].map((seconds) => ((1000 * seconds) / calls).toFixed(2));
      process.stdout.write(
        `${name}: ${value.perSecond.toFixed(0)} calls/s, ${ms[0]} ms CPU of the service, ${ms[1]} ms of Redis\n`,
      );
    }
    await service.stop();
    await fakeYoutube.stop();
    await redis.stop();
  } finally {
    await stopAll();
    await database.close();
    await folder.remove();
  }
}

await main();
