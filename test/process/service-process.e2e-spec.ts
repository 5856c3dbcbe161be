import { mkdirSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { CliSession } from '../admin/run-cli.js';
import { copyTestCluster } from '../database/cluster-user.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../harness/until.js';
import { Program, temporaryFolder } from './program.js';

let fakeYoutube: FakeYoutube;
let database: QuotaDatabase;
const running: Program[] = [];

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
  database = await QuotaDatabase.open();
});
afterAll(async () => {
  await fakeYoutube.close();
  await database.close();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.stop('SIGKILL')));
});

/** Runs the service until the end of the test. */
function run(variables: Record<string, string>): Program {
  const program = Program.run('main.js', {
    DATABASE_URL: database.url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    ...variables,
  });
  running.push(program);
  return program;
}

async function newKey(): Promise<{ id: string; key: string }> {
  const { id } = await database.organizations.create({ name: 'Process', plan: 'pro', monthlyLimit: null });
  const { key } = await database.keys.issue({ organizationId: id });
  return { id, key };
}

const call = async (url: string, path: string, key: string): Promise<Response> =>
  fetch(url + path, { headers: { Authorization: `Bearer ${key}` } });

const readiness = (url: string): Promise<number | 'refused'> =>
  fetch(`${url}/health/ready`).then(
    (response) => response.arrayBuffer().then(() => response.status),
    () => 'refused' as const,
  );

describe('the service as a process', () => {
  it('at SIGTERM reports not ready before it refuses connections, and drops no response under load behind a load balancer', async () => {
    const { id, key } = await newKey();
    const limits = {
      UPSTREAM_CONCURRENCY: '64',
      CALLS_PER_KEY: '0',
      CALLS_PER_ORGANIZATION: '0',
      RATE_LIMIT_PER_MINUTE: '0',
    };
    // On a busy machine a few rounds of requests take seconds.
    const service = run({ SHUTDOWN_DELAY_SECONDS: '8', ...limits });
    const url = await service.url();
    /** Rejects when the response is incomplete. On a busy machine the database is slow for the service: then it is requested again. */
    const fetched = async (path: string): Promise<number> => {
      const response = await call(url, path, key);
      const { summary, error } = (await response.json()) as { summary?: { fetched: number }; error?: object };
      if (summary) return summary.fetched;
      expect([response.status, error]).toMatchObject([503, { message: expect.stringMatching(/database/) }]);
      return fetched(path);
    };
    const cached = '/channels/@tidewater/transcripts?limit=3';
    const counts = [await fetched(cached)];
    const hold = fakeYoutube.hold({ kind: 'timedtext' }, 20);
    const held = Array.from({ length: 20 }, (_, index) => fetched(`/channels/@1-videos-no-${index + 60}/transcripts`));
    await hold.arrived;

    // Sequential requests, for as long as the balancer sends any, and one after it saw the readiness.
    let sending = true;
    const client = async (): Promise<void> => {
      while (sending) counts.push(await fetched(cached));
      counts.push(await fetched(cached));
    };
    const clients = Array.from({ length: 12 }, client);
    await until(() => counts.length > 50);
    service.child.kill('SIGTERM');
    await until(async () => (await readiness(url)) === 503);
    const [, line = '{}'] = /^(.*"event":"stopping".*)$/m.exec(service.stdout) ?? [];
    expect(JSON.parse(line)).toMatchObject({
      signal: 'SIGTERM',
      callsInFlight: expect.any(Number),
      message: 'Requests are served for 8 s more; running calls may end within 50 s.',
    });
    sending = false;
    await Promise.all(clients);
    await until(async () => (await readiness(url)) === 'refused');
    hold.release();
    counts.push(...(await Promise.all(held)));

    const used = counts.reduce((sum, count) => sum + count);
    expect(used).toBe((counts[0] ?? 0) + held.length);
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(await database.quota.usage(id)).toMatchObject({ used, reserved: 0 });
    fakeYoutube.reset();
  });

  it('without a grace period aborts running calls at SIGTERM, and still settles them and exits with 0', async () => {
    const { id, key } = await newKey();
    const service = run({ SHUTDOWN_GRACE_SECONDS: '0' });
    const url = await service.url();
    const hold = fakeYoutube.hold({ kind: 'timedtext' });
    const answering = call(url, '/channels/@3-videos-no-17/transcripts', key).then((answer) => answer.text());
    await hold.arrived;
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    await expect(answering).rejects.toThrow();
    expect(service.stderr).toBe('');
    expect(await database.quota.usage(id)).toMatchObject({ used: 0, reserved: 0 });
    fakeYoutube.reset();
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('exits with 0 at %s during startup', async (signal) => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const requested = new Promise((resolve) => silent.once('connection', resolve));
    const { port } = silent.address() as AddressInfo;
    const service = run({ DATABASE_URL: `postgres://a:b@127.0.0.1:${port}/c` });
    await requested;
    expect(await service.stop(signal)).toEqual({ code: 0, signal: null });
    expect(service.stderr).toBe('');
    silent.close();
  });
});

describe('a failed start exits with 1 and prints one line for each reason', () => {
  const FAULT_LINE = /"level":"(?:warn|error|fatal)"/;

  it('for every invalid variable', async () => {
    const service = run({ PORT: 'http', LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://u:hunter2@db' });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    const lines = service.stderr.trim().split('\n');
    expect(lines).toHaveLength(3);
    expect(service.stderr).toMatch(/PORT .*\n.*DATABASE_URL .*\n.*LOG_LEVEL /);
    expect(service.stderr).not.toContain('hunter2');
  });

  it.each(['PORT', 'MESSAGE_PORT'])('for a port in use, which names %s', async (variable) => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const port = String((server.address() as AddressInfo).port);
    const service = run({ MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: '0', [variable]: port });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(new RegExp(`^channel-transcripts: .*EADDRINUSE.*${port}.* ${variable}\\.\\n$`));
    expect(service.stdout).not.toMatch(FAULT_LINE);
    server.close();
  });

  it('for an address that this machine does not have', async () => {
    const service = run({ HOST: '192.0.2.1' });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(/^channel-transcripts: listen EADDRNOTAVAIL.*\n$/);
    expect(service.stdout).not.toMatch(FAULT_LINE);
  });

  it('for a NATS server that is unavailable or not named, without its password', async () => {
    const failure = async (variables: Record<string, string>): Promise<string> => {
      const service = run({ MESSAGE_TRANSPORT: 'nats', ...variables });
      expect(await service.exited).toEqual({ code: 1, signal: null });
      expect(service.stdout).not.toMatch(FAULT_LINE);
      return service.stderr;
    };
    expect(await failure({ NATS_URL: 'nats://app:hidden@127.0.0.1:1' })).toMatch(
      /^channel-transcripts: Messages cannot be received at nats:\/\/127\.0\.0\.1:1: [^\n]+\. Change NATS_URL\.\n$/,
    );
    expect(await failure({})).toBe('channel-transcripts: NATS_URL must be set when MESSAGE_TRANSPORT is nats\n');
  });

  it('for a database that does not respond, without its password', async () => {
    const service = run({ DATABASE_URL: 'postgres://app:hunter2@127.0.0.1:1/app' });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(service.stderr.trim().split('\n')).toHaveLength(1);
    expect(service.stderr).toContain('127.0.0.1');
    expect(service.stderr + service.stdout).not.toContain('hunter2');
    expect(service.stdout).not.toMatch(FAULT_LINE);
  });
});

describe('a restart on the embedded database', () => {
  it('retains organizations, keys and usage in a consistent state, even after kill -9 during a call', async () => {
    const folder = temporaryFolder();
    const dataDir = join(folder.path, 'data');
    const variables = { DATABASE_URL: '', DATA_DIR: dataDir };
    const commands = new CliSession();
    const command = async (...args: string[]): Promise<Record<string, string>> => {
      const { code, output, errorOutput } = await commands.run([...args, '--json'], variables);
      if (code !== 0) throw new Error(errorOutput);
      return JSON.parse(output) as Record<string, string>;
    };
    try {
      mkdirSync(dataDir, { mode: 0o711 });
      await copyTestCluster(dataDir);
      const first = run(variables);
      const url = await first.url();
      const { id = '' } = await command('org', 'create', '--name', 'Process', '--plan', 'pro');
      const { key = '' } = await command('key', 'issue', id);
      fakeYoutube.reset();
      const whole = await call(url, '/channels/@tidewater/transcripts?limit=2', key);
      expect(await whole.json()).toMatchObject({ summary: { fetched: 2 } });
      const hold = fakeYoutube.hold({ kind: 'timedtext' });
      const cut = call(url, '/channels/@tidewater/transcripts?limit=5', key).then((answer) => answer.text());
      await hold.arrived;
      await first.stop('SIGKILL');
      await expect(cut).rejects.toThrow();
      hold.release();

      const second = run(variables);
      const again = await second.url();
      // While it waits for the lock of the second process, that serves calls.
      const third = run(variables);
      const usage = (await (await call(again, '/usage', key)).json()) as { used: number; reserved: number };
      // The reservation of the killed call lives until its lease ends, and was not charged.
      expect(usage).toMatchObject({ used: 2, reserved: 3 });
      const afterwards = await call(again, '/channels/@tidewater/transcripts?limit=1', key);
      expect(await afterwards.json()).toMatchObject({ summary: { fetched: 1 } });

      expect(await command('usage', id)).toMatchObject({ used: 3 });
      expect(await third.exited).toEqual({ code: 1, signal: null });
      expect(third.stderr.trim().split('\n')).toHaveLength(1);
      expect(third.stderr).toContain(dataDir);
      expect(await second.stop('SIGINT')).toEqual({ code: 0, signal: null });
    } finally {
      commands.close();
      folder.remove();
    }
  });
});
