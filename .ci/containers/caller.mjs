// caller.mjs load KEY: eight callers request channels that were not requested before, until SIGTERM; exits with 1 if one
// failed or none was made.
// caller.mjs one KEY PATH [HEADER=VALUE]...: one call, and whether its response is complete.
import { request } from 'node:http';

const TIMEOUT_MS = 60_000;
const CALLERS = 8;
const [what, key, path, ...headers] = process.argv.slice(2);

const call = (path, headers = {}) =>
  new Promise((resolve) => {
    const startedAtMs = Date.now();
    const end = (status, complete, text, bytes = 0) =>
      resolve({ status, complete, text, bytes, ms: Date.now() - startedAtMs });
    const options = { port: 3000, path, agent: false, headers: { authorization: `Bearer ${key}`, ...headers } };
    const sent = request(options, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part)).on('error', () => undefined);
      response.on('close', () => {
        const body = Buffer.concat(parts);
        end(response.statusCode, response.complete, body.toString(), body.length);
      });
    });
    sent.on('error', (error) => end(0, false, error.message)).end();
    setTimeout(() => sent.destroy(new Error('no end within a minute')), TIMEOUT_MS).unref();
  });

if (what === 'one') {
  const { status, complete, bytes, ms, text } = await call(
    path,
    Object.fromEntries(headers.map((each) => each.split('='))),
  );
  const end = text.slice(-90).replace(/[^ -~]/g, '.');
  console.log(`${status}, ${complete ? 'complete' : 'CUT OFF'}, ${bytes} bytes, ${ms} ms … ${end}`);
  process.exit(status === 200 && complete ? 0 : 1);
}

let stopped = false;
let channel = Date.now() % 50_000_000;
let calls = 0;
let slowestMs = 0;
const lost = {};
process.on('SIGTERM', () => (stopped = true));
await Promise.all(
  Array.from({ length: CALLERS }, async () => {
    while (!stopped) {
      channel += 1;
      const name = `@bench-${3 + (channel % 9_000)}x${1 + (Math.floor(channel / 9_000) % 200)}`;
      const { status, complete, text, ms } = await call(`/channels/${name}/transcripts?limit=3`);
      calls += 1;
      slowestMs = Math.max(slowestMs, ms);
      if (status === 200 && complete && text.includes('"total":3,"succeeded":3')) continue;
      const kind = `${status} complete=${complete} ${text.slice(0, 160)}`;
      lost[kind] = (lost[kind] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }),
);
const count = Object.values(lost).reduce((sum, each) => sum + each, 0);
console.log(`${count} of ${calls} calls lost, the slowest took ${slowestMs} ms ${count ? JSON.stringify(lost) : ''}`);
process.exit(count > 0 || calls === 0 ? 1 : 0);
