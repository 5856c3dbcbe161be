import { execFile } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../dist-tools/test/harness/free-port.js';
import { Program, PROJECT } from './processes.mjs';

const run = promisify(execFile);
const NO_LIMIT = 2_000_000_000;

/** Starts a fake YouTube in its own process. Each program gets its own, so that none pushes out another's texts. */
export async function startFakeYoutube() {
  const program = new Program('fake-youtube', [join(PROJECT, 'dist-tools/test/fake-youtube/main.js')], {
    output: 'pipe',
  });
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: program.child.stdout }).on('line', (line) => {
      const found = /listens at (http:\S+)/.exec(line)?.[1];
      if (found) resolve(found);
    });
    void program.ended.then(() => reject(new Error('The fake YouTube did not start')));
  });
  const post = async (path, body = {}) => {
    const response = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`The fake YouTube returned ${response.status} to ${path}`);
  };
  return {
    url,
    setLatency: (latencyMs) => post('/fake-youtube/faults', { latencyMs }),
    setBudgets: (budgets) => post('/fake-youtube/faults', { budgets }),
    /** Also the count of the requests, of which only the latest 20,000 are counted. */
    reset: () => post('/fake-youtube/reset'),
    requestCount: async () => (await (await fetch(`${url}/fake-youtube/requests`)).json()).total,
    stop: () => program.stop(),
  };
}

/** The environment of a measured service: production's, without the limits that would refuse the load. */
function serviceEnvironment(changes) {
  return {
    ...process.env,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    REDIS_URL: '',
    DATABASE_URL: '',
    UPSTREAM_PROXY_URL: '',
    RATE_LIMIT_PER_MINUTE: '0',
    CALLS_PER_KEY: '0',
    CALLS_PER_ORGANIZATION: '0',
    CALLS_PER_PROCESS: '0',
    ...changes,
  };
}

/** Makes an organization on the Pro plan that no quota stops, and a key for it. */
export async function makeKey(databaseUrl) {
  const env = serviceEnvironment({ DATABASE_URL: databaseUrl });
  const command = async (...args) =>
    JSON.parse((await run(process.execPath, [join(PROJECT, 'dist/cli.js'), ...args, '--json'], { env })).stdout);
  const { id } = await command(
    'org',
    'create',
    '--name',
    'Bench',
    '--plan',
    'pro',
    '--monthly-limit',
    String(NO_LIMIT),
  );
  const { key } = await command('key', 'issue', id, '--name', 'bench');
  return key;
}

/** Starts the service, or another program of the same needs, and waits until it is ready. */
export async function startService(folder, env, { name = 'service', main = 'dist/main.js' } = {}) {
  const port = await freePort();
  // The log is written to a file, as to a collector; reading it here would load the measured machine.
  const logFile = join(folder, `${name}.log`);
  const log = await open(logFile, 'a');
  const program = new Program(name, [join(PROJECT, main)], {
    env: serviceEnvironment({ PORT: String(port), ...env }),
    output: log.fd,
  });
  await log.close();
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (program.hasEnded) throw new Error(`${name} did not start:\n${(await readFile(logFile, 'utf8')).slice(-2_000)}`);
    await sleep(5);
  }
  return { program, port, stop: () => program.stop() };
}
