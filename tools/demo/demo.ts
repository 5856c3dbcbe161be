import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { watch, type FSWatcher } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { transformFile } from '@swc/core';
import { startFakeYoutube } from '../../test/fake-youtube/fake-youtube.js';

// Runs the whole service on one machine: the fake YouTube in this process, and the service and its commands as an operator
// runs them. All data is in a temporary folder, which is deleted on Ctrl-C. With `--watch` and other options of Node, which the
// service gets, it runs from dist-tools/src and starts again when that changes.

const PROJECT = join(import.meta.dirname, '../../..');
const PREFERRED_PORT = 3000;

function print(line = ''): void {
  process.stdout.write(`${line}\n`);
}

/** Returns PORT; without one the preferred port, or any free port when that is in use. */
async function choosePort(host: string): Promise<string> {
  const { PORT } = process.env;
  if (PORT) return PORT;
  const server = createServer();
  return new Promise((resolve) => {
    server
      .once('error', () => resolve('0'))
      .listen(PREFERRED_PORT, host, () => {
        server.close(() => resolve(String(PREFERRED_PORT)));
      });
  });
}

/** Runs an admin command and parses its JSON output. */
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

interface DemoOrganization {
  id: string;
  key: string;
}

async function organizationWithKey(environment: NodeJS.ProcessEnv, ...options: string[]): Promise<DemoOrganization> {
  const { id = '' } = await command(environment, 'org', 'create', ...options);
  const { key = '' } = await command(environment, 'key', 'issue', id, '--name', 'demo');
  return { id, key };
}

/** Resolves to the URL of the service when it listens; rejects with its last lines when it exits before. */
function waitUntilListening(service: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    if (service.stdout) {
      createInterface({ input: service.stdout }).on('line', (line) => {
        lines.push(line);
        const url = /"event":"listening","url":"([^"]+)"/.exec(line)?.[1];
        if (url) resolve(url);
      });
    }
    service.once('exit', () => reject(new Error(`The service did not start.\n${lines.slice(-5).join('\n')}`)));
  });
}

/** To the same text as `npm run build:tools`, which then leaves the file: Node.js would not watch one that is replaced. */
async function compile(file: string): Promise<void> {
  const source = join(PROJECT, 'src', file);
  const target = join(PROJECT, 'dist-tools/src', file.replace(/ts$/, 'js'));
  const sourceFileName = relative(dirname(target), source);
  const options = { configFile: join(PROJECT, 'tools/swc.json'), swcrc: false, sourceMaps: 'inline' } as const;
  const { code } = await transformFile(source, { ...options, sourceFileName });
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, code);
}

/** Copies a file or folder that is no code, which `npm run build:tools` does not, to where the code reads it. */
async function copyAsset(path: string): Promise<void> {
  await cp(join(PROJECT, 'src', path), join(PROJECT, 'dist-tools/src', path), { recursive: true });
}

/** Compiles each file of `src` that is saved, as `npm run build:tools` does; a file that cannot be compiled is left as it was. */
function compileChanges(): FSWatcher {
  // One after another: a save is several events, and the first ones can find an empty file.
  let changes = Promise.resolve();
  const apply = async (file: string): Promise<void> => {
    if (file.endsWith('.html')) await copyAsset(file);
    else if (file.endsWith('.sql')) {
      await copyAsset(file);
      // The service starts again when code changes; SQL is not code, so what reads it is written again.
      await compile('database/migrate.ts');
    } else if (file.endsWith('.ts') && !file.endsWith('.spec.ts')) await compile(file);
  };
  return watch(join(PROJECT, 'src'), { recursive: true }, (_event, file) => {
    if (file === null) return;
    changes = changes
      .then(() => apply(file))
      .catch((error: unknown) => void process.stderr.write(`${String(error)}\n`));
  });
}

async function waitForExit(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once('exit', resolve));
}

/** The commands that follow a channel, on which the second one publishes. */
function printFollowing(base: string, youtubeUrl: string, key: string): void {
  const authorized = `-H "Authorization: Bearer ${key}" `;
  const post = (url: string, body: object, header = authorized): string =>
    `curl -s ${header}-H "Content-Type: application/json" -d '${JSON.stringify(body)}' "${url}"`;
  const channel = '@harbourlight';
  print(
    '  # follow a channel: subscribe, publish a video on the fake YouTube, check, and read the feed some seconds later',
  );
  const created = post(`${base}/subscriptions`, { channel, start: 1 });
  print(`  SUBSCRIPTION=$(${created} | grep -o 'sub_[0-9A-Za-z]*')`);
  print(`  ${post(`${youtubeUrl}/fake-youtube/publish`, { channel }, '')}`);
  print(`  ${post(`${base}/subscriptions/$SUBSCRIPTION/check`, {})}`);
  print(`  curl -s ${authorized}"${base}/subscriptions/$SUBSCRIPTION/results"`);
}

const KEPT_CHANNEL = '@fogsignalradio';
const SEARCHED = 'breakwater';

/** Follows a channel and keeps what it has. Returns the first passage that a search finds. */
async function passageOf(base: string, key: string): Promise<object> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ channel: KEPT_CHANNEL, start: 1, keep: true });
  await fetch(`${base}/subscriptions`, { method: 'POST', headers, body });
  for (;;) {
    const found = await fetch(`${base}/library/search?q=${SEARCHED}&limit=1`, { headers });
    const { results = [] } = (await found.json()) as { results?: { title: string; url: string; text: string }[] };
    const [passage] = results;
    if (passage) return { title: passage.title, url: passage.url, text: passage.text };
    await setTimeout(200);
  }
}

function printInstructions(
  base: string,
  youtubeUrl: string,
  dataFolder: string,
  { pro, free, small }: Record<'pro' | 'free' | 'small', DemoOrganization>,
  passage: object,
): void {
  const curl = (key: string, path: string, options = '-s'): string =>
    `curl ${options} ${key ? `-H "Authorization: Bearer ${key}" ` : ''}"${base}${path}"`;
  print();
  print('Ready. Run this command, and run it again to get the transcripts from the cache:');
  print();
  print(curl(pro.key, '/channels/@harbourlight/transcripts?limit=25'));
  print();
  print('Or use Swagger UI: select Authorize and enter the Pro key.');
  print(`  docs:     ${base}/docs`);
  print(`  Pro key:  ${pro.key}`);
  print(`  free key: ${free.key}`);
  print();
  print('For the examples of the pages in docs, paste this line into another terminal:');
  print(`  export BASE_URL=${base} KEY=${pro.key}`);
  print();
  print('More requests:');
  const more: [string, string][] = [
    ['one video as subtitles, on the free plan', curl(free.key, '/videos/hl-dinghy__/transcript?format=srt')],
    ['the quota usage', curl(pro.key, '/usage')],
    ['a channel as a raw URL', curl(pro.key, '/channels/https://www.youtube.com/@tidewater/transcripts?limit=2')],
    ['401: no API key', curl('', '/channels/@harbourlight/transcripts', '-si')],
    ['402: a monthly limit of 2 is too small', curl(small.key, '/channels/@tidewater/transcripts?limit=5', '-si')],
    ['403: not included in the free plan', curl(free.key, '/channels/@harbourlight/transcripts', '-si')],
    ['404: unknown channel', curl(pro.key, '/channels/@no-such-channel/transcripts', '-si')],
  ];
  for (const [what, line] of more) print(`  # ${what}\n  ${line}`);
  printFollowing(base, youtubeUrl, pro.key);
  print(`  # search what the subscription to ${KEPT_CHANNEL} keeps; by hand: ${base}/library/ui, with the Pro key`);
  print(`  ${curl(pro.key, `/library/search?q=${SEARCHED}&limit=1`)}`);
  print(`  ${JSON.stringify(passage)}`);
  print('  # the usage of the Pro organization as CSV, for an invoice');
  print(`  DATABASE_URL= DATA_DIR=${dataFolder} npm run --silent cli -- usage ${pro.id} --by day --csv`);
  print();
  print(
    'To use it from an AI assistant, add it as an MCP server, for example to Claude Code (docs/mcp.md has others):',
  );
  print(
    `  claude mcp add --transport http channel-transcripts ${base}/mcp --header "Authorization: Bearer ${pro.key}"`,
  );
  print();
  print(
    'All videos are fictional, from the fake YouTube; no request leaves this machine. Press Ctrl-C to stop everything.',
  );
}

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'transcripts-demo-'));
  print('1/4 Starting the fake YouTube');
  const fakeYoutube = await startFakeYoutube({ latencyMs: 40 });
  const host = process.env['HOST'] || '127.0.0.1';
  const environment = {
    ...process.env,
    DATABASE_URL: '',
    REDIS_URL: '',
    UPSTREAM_PROXY_URL: '',
    DATA_DIR: join(folder, 'data'),
    YOUTUBE_BASE_URL: fakeYoutube.url,
    HOST: host,
    PORT: await choosePort(host),
    WEBHOOK_SECRET_KEY: randomBytes(32).toString('hex'),
    // Receivers run on this machine, as that of docs/webhooks.md.
    WEBHOOK_ALLOW_PRIVATE: 'true',
    // No load balancer routes to this service, so shutdown need not wait for one.
    SHUTDOWN_DELAY_SECONDS: '0',
  };
  print('2/4 Starting the service with its embedded PostgreSQL');
  const options = process.argv.slice(2);
  const watched = options.includes('--watch');
  for (const folder of watched
    ? [
        'database/migrations',
        'database/functions',
        'http/server/page-script.html',
        'admin/http/page.html',
        'library/library-page.html',
      ]
    : []) {
    await rm(join(PROJECT, 'dist-tools/src', folder), { recursive: true, force: true });
    await copyAsset(folder);
  }
  const compiler = watched ? compileChanges() : undefined;
  const program = compiler ? 'dist-tools/src/main.js' : 'dist/main.js';
  // Detached, so that Ctrl-C reaches only this process, which then stops the service gracefully.
  const service = spawn(process.execPath, [...options, join(PROJECT, program)], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  // Whoever changes the service reads its log.
  if (compiler) service.stdout.pipe(process.stdout);
  let stopping = false;
  const stop = async (exitCode: number): Promise<void> => {
    if (stopping) return;
    stopping = true;
    compiler?.close();
    service.kill('SIGTERM');
    await waitForExit(service);
    await fakeYoutube.close();
    await rm(folder, { recursive: true, force: true });
    process.exit(exitCode);
  };
  process.on('SIGINT', () => void stop(0));
  process.on('SIGTERM', () => void stop(0));
  try {
    const base = await waitUntilListening(service);
    print('3/4 Creating organizations: Pro plan, free plan, and Pro plan with a monthly limit of 2');
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
    print('4/4 Issued an API key for each');
    const passage = await passageOf(base, pro.key);
    printInstructions(base, fakeYoutube.url, environment.DATA_DIR, { pro, free, small }, passage);
    service.once('exit', () => {
      if (!stopping) process.stderr.write('The service exited unexpectedly.\n');
      void stop(1);
    });
  } catch (error) {
    if (!stopping) process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    await stop(1);
  }
}

await main();
