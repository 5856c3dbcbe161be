import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { type FakeYoutube, startFakeYoutube } from '../fake-youtube/fake-youtube.js';
import { until } from '../harness/until.js';
import { startReceiver } from '../webhooks/receiver.js';
import type { FileCalls } from './coverage.js';

/*
 * Through how many files of `src` a piece of work passes, by the functions that run in a service from its single files:
 * `npm run walk -- cold|cached|check|refused [--files]`. Loops in the background that happen to run count too.
 */

const PROJECT = join(import.meta.dirname, '../../..');
const CHANNEL = '@harbourlight';

interface Service {
  fakeYoutube: FakeYoutube;
  /** Sends a request with a key of a Pro organization; returns the JSON of the response. */
  call: (method: string, path: string, body?: object) => Promise<Record<string, any>>;
  /** What ran since the last time. */
  calls: () => Promise<FileCalls[]>;
}

/** Each walk prepares what does not count, and returns what does. */
const WALKS: Record<string, (service: Service) => Promise<() => Promise<unknown>>> = {
  async cold({ call }) {
    await call('GET', '/channels/@tidewater/transcripts?limit=5');
    return () => call('GET', `/channels/${CHANNEL}/transcripts?limit=5`);
  },
  async cached({ call }) {
    for (let times = 0; times < 2; times += 1) await call('GET', `/channels/${CHANNEL}/transcripts?limit=5`);
    return () => call('GET', `/channels/${CHANNEL}/transcripts?limit=5`);
  },
  async check({ call, fakeYoutube }) {
    const receiver = await startReceiver();
    await call('POST', '/webhooks', { url: receiver.url, events: ['upload.ready', 'upload.failed'] });
    const { id } = await call('POST', '/subscriptions', { channel: CHANNEL });
    await until(async () => (await call('GET', `/subscriptions/${id}`))['checkedAt'] !== null);
    return async () => {
      fakeYoutube.publish({ channel: CHANNEL });
      await call('POST', `/subscriptions/${id}/check`);
      await until(() => receiver.received.length > 0);
      await receiver.close();
    };
  },
  async refused({ call, fakeYoutube }) {
    await call('GET', '/channels/@tidewater/transcripts?limit=5');
    fakeYoutube.setFaults({ kind: 'bot-check' });
    return () => call('POST', '/transcripts', { videos: ['hl-dinghy__', 'hl-island__', 'hl-sharp___'] });
  },
};

async function start(folder: string): Promise<{ service: Service; stop: () => Promise<void> }> {
  for (const asset of [
    'database/migrations',
    'database/functions',
    'http/server/page-script.html',
    'admin/http/page.html',
    'library/library-page.html',
  ])
    await cp(join(PROJECT, 'src', asset), join(PROJECT, 'dist-tools/src', asset), { recursive: true });
  const fakeYoutube = await startFakeYoutube();
  const environment = {
    ...process.env,
    ...{
      DATABASE_URL: '',
      REDIS_URL: '',
      UPSTREAM_PROXY_URL: '',
      HOST: '127.0.0.1',
      PORT: '0',
      SHUTDOWN_DELAY_SECONDS: '0',
    },
    ...{ DATA_DIR: join(folder, 'data'), YOUTUBE_BASE_URL: fakeYoutube.url, RATE_LIMIT_PER_MINUTE: '0' },
    ...{ WEBHOOK_SECRET_KEY: randomBytes(32).toString('hex'), WEBHOOK_ALLOW_PRIVATE: 'true' },
  };
  const probe = join(import.meta.dirname, 'coverage.js');
  const program = spawn(process.execPath, ['--import', probe, join(PROJECT, 'dist-tools/src/main.js')], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const url = await listening(program);
  const command = async (...words: string[]) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(PROJECT, 'dist-tools/src/cli.js'), ...words, '--json'],
      { env: environment },
    );
    return JSON.parse(stdout) as { id: string; key: string };
  };
  const { id } = await command('org', 'create', '--name', 'Walk', '--plan', 'pro');
  const { key } = await command('key', 'issue', id);
  const service: Service = {
    fakeYoutube,
    call: async (method, path, body) => {
      const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) };
      const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return JSON.parse(text) as Record<string, any>;
    },
    calls: async () => {
      program.send('take');
      const [files] = (await once(program, 'message')) as [FileCalls[]];
      return files;
    },
  };
  const stop = async () => {
    program.kill('SIGTERM');
    await once(program, 'exit');
    await fakeYoutube.close();
  };
  return { service, stop };
}

async function listening(program: ChildProcess): Promise<string> {
  if (!program.stdout) throw new Error('The service has no output.');
  for await (const line of createInterface({ input: program.stdout })) {
    const url = /"event":"listening","url":"([^"]+)"/.exec(line)?.[1];
    if (url === undefined) continue;
    program.stdout.resume();
    return url;
  }
  throw new Error('The service did not start.');
}

async function main(): Promise<void> {
  const [name = '', ...options] = process.argv.slice(2);
  const walk = Object.hasOwn(WALKS, name) ? WALKS[name] : undefined;
  if (!walk) {
    process.stderr.write(`Usage: npm run walk -- ${Object.keys(WALKS).join('|')} [--files]\n`);
    process.exit(1);
  }
  const folder = await mkdtemp(join(tmpdir(), 'transcripts-walk-'));
  try {
    const { service, stop } = await start(folder);
    try {
      const work = await walk(service);
      await service.calls();
      await work();
      const files = await service.calls();
      if (options.includes('--files')) for (const { file, calls } of files) process.stdout.write(`${file} ${calls}\n`);
      const sum = (value: (file: FileCalls) => number) => files.reduce((total, file) => total + value(file), 0);
      const figures = [files.length, sum(({ functions }) => functions), sum(({ calls }) => calls)];
      process.stdout.write(`${name}: ${figures[0]} files, ${figures[1]} functions, ${figures[2]} calls\n`);
    } finally {
      await stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

await main();
