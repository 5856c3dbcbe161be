import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startFakeYoutube } from '../../test/fake-youtube/fake-youtube.js';

// The whole service on one machine: the fake YouTube in this process, the service and its commands as an
// operator runs them. Everything lives in a temporary folder and is gone after Ctrl-C.

const PROJECT = join(import.meta.dirname, '../../..');
const PREFERRED_PORT = 3000;

function say(line = ''): void {
  process.stdout.write(`${line}\n`);
}

/** The preferred port, or any free one when it is taken. */
async function choosePort(): Promise<number> {
  const free = (port: number): Promise<number> =>
    new Promise((resolve, reject) => {
      const server = createServer()
        .once('error', reject)
        .listen(port, () => {
          const { port: chosen } = server.address() as AddressInfo;
          server.close(() => resolve(chosen));
        });
    });
  return free(PREFERRED_PORT).catch(() => free(0));
}

/** Runs an admin command and reads its JSON answer. */
async function command(environment: NodeJS.ProcessEnv, ...args: string[]): Promise<Record<string, string>> {
  const child = spawn(process.execPath, [join(PROJECT, 'dist/cli.js'), ...args, '--json'], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  for await (const chunk of child.stdout) output += String(chunk);
  const code = child.exitCode ?? (await new Promise((resolve) => child.once('exit', resolve)));
  if (code !== 0) throw new Error(`${args.join(' ')} failed with exit code ${String(code)}.`);
  return JSON.parse(output) as Record<string, string>;
}

async function organizationWithKey(environment: NodeJS.ProcessEnv, ...options: string[]): Promise<string> {
  const { id = '' } = await command(environment, 'org', 'create', ...options);
  const { key = '' } = await command(environment, 'key', 'issue', id, '--name', 'demo');
  return key;
}

/** Resolves when the service says that it listens; rejects with what it said when it ends before. */
function listening(service: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const said: string[] = [];
    if (service.stdout) {
      createInterface({ input: service.stdout }).on('line', (line) => {
        said.push(line);
        if (line.includes('"event":"listening"')) resolve();
      });
    }
    service.once('exit', () => reject(new Error(`The service did not start.\n${said.slice(-5).join('\n')}`)));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once('exit', resolve));
}

function announce(base: string, keys: { pro: string; free: string; small: string }): void {
  const curl = (key: string, path: string, options = '-s'): string =>
    `curl ${options} ${key ? `-H "Authorization: Bearer ${key}" ` : ''}"${base}${path}"`;
  say();
  say('Ready. Paste this, and then once more to see the transcripts come from the cache:');
  say();
  say(curl(keys.pro, '/channels/@harbourlight/transcripts?limit=25'));
  say();
  say('The same in Swagger UI: press Authorize and paste the Pro key.');
  say(`  docs:     ${base}/docs`);
  say(`  Pro key:  ${keys.pro}`);
  say(`  free key: ${keys.free}`);
  say();
  say('More to try:');
  const more: [string, string][] = [
    ['what was used of the quota', curl(keys.pro, '/usage')],
    ['a channel as a raw URL', curl(keys.pro, '/channels/https://www.youtube.com/@tidewater/transcripts?limit=2')],
    ['401, no key', curl('', '/channels/@harbourlight/transcripts', '-si')],
    ['402, a quota of 2 is too small', curl(keys.small, '/channels/@tidewater/transcripts?limit=5', '-si')],
    ['403, the free plan', curl(keys.free, '/channels/@harbourlight/transcripts', '-si')],
    ['404, no such channel', curl(keys.pro, '/channels/@no-such-channel/transcripts', '-si')],
  ];
  for (const [what, line] of more) say(`  # ${what}\n  ${line}`);
  say();
  say('Every video here is made up by the fake YouTube; nothing leaves this machine. Ctrl-C stops all of it.');
}

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'channel-transcripts-demo-'));
  say('1/4 the fake YouTube');
  const fakeYoutube = await startFakeYoutube({ latencyMs: 40 });
  const port = await choosePort();
  const base = `http://127.0.0.1:${port}`;
  const environment = {
    ...process.env,
    DATABASE_URL: '',
    REDIS_URL: '',
    UPSTREAM_PROXY_URL: '',
    DATA_DIR: join(folder, 'data'),
    YOUTUBE_BASE_URL: fakeYoutube.url,
    HOST: '127.0.0.1',
    PORT: String(port),
    // Nobody else sends requests here, so that Ctrl-C need not wait for a balancer.
    SHUTDOWN_DELAY_SECONDS: '0',
  };
  say('2/4 the service with its embedded PostgreSQL');
  // Detached: Ctrl-C reaches this process alone, which then stops the service in good order.
  const service = spawn(process.execPath, [join(PROJECT, 'dist/main.js')], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  let stopping = false;
  const stop = async (exitCode: number): Promise<void> => {
    if (stopping) return;
    stopping = true;
    service.kill('SIGTERM');
    await ended(service);
    await fakeYoutube.close();
    await rm(folder, { recursive: true, force: true });
    process.exit(exitCode);
  };
  process.on('SIGINT', () => void stop(0));
  process.on('SIGTERM', () => void stop(0));
  try {
    await listening(service);
    say('3/4 an organization on the Pro plan, one on the free plan, one with a quota of 2');
    const pro = await organizationWithKey(environment, '--name', 'Demo Pro', '--plan', 'pro');
    const free = await organizationWithKey(environment, '--name', 'Demo Free', '--plan', 'free');
    const small = await organizationWithKey(
      environment,
      '--name',
      'Demo Small',
      '--plan',
      'pro',
      '--monthly-limit',
      '2',
    );
    say('4/4 an API key for each');
    announce(base, { pro, free, small });
    service.once('exit', () => {
      if (!stopping) process.stderr.write('The service has ended.\n');
      void stop(1);
    });
  } catch (error) {
    if (!stopping) process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    await stop(1);
  }
}

await main();
