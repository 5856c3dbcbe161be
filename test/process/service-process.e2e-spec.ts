import { createServer, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { createTestDatabase } from '../database/test-database.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../until.js';
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

function run(file: 'main.js' | 'cli.js', variables: Record<string, string>, ...args: string[]): Program {
  const program = Program.run(
    file,
    { DATABASE_URL: database.url, YOUTUBE_BASE_URL: fakeYoutube.url, ...variables },
    ...args,
  );
  running.push(program);
  return program;
}

async function json(program: Program): Promise<Record<string, string>> {
  const { code } = await program.exited;
  if (code !== 0) throw new Error(program.stderr);
  return JSON.parse(program.stdout) as Record<string, string>;
}

async function newKey(on = database, monthlyLimit: number | null = null): Promise<{ id: string; key: string }> {
  const { id } = await on.organizations.create({ name: 'Process', plan: 'pro', monthlyLimit });
  const { key } = await on.keys.issue({ organizationId: id });
  return { id, key };
}

const call = async (url: string, path: string, key: string): Promise<Response> =>
  fetch(url + path, { headers: { Authorization: `Bearer ${key}` } });

/** Retries a call that is refused because the database, on a busy machine, did not respond in time. */
async function admittedCall(url: string, path: string, key: string): Promise<Response> {
  let response = await call(url, path, key);
  await until(async () => {
    if (response.status !== 503) return true;
    await response.arrayBuffer();
    response = await call(url, path, key);
    return response.status !== 503;
  });
  return response;
}

describe('the service as a process', () => {
  it('logs how to create the first organization when there is none', async () => {
    const service = run('main.js', {});
    await service.url();
    while (!service.stdout.includes('no_organization'))
      await new Promise((resolve) => service.child.stdout?.once('data', resolve));
    expect(service.stdout).toContain('npm run cli -- org create');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'finishes and settles running calls at %s, and exits with 0',
    async (signal) => {
      const service = run('main.js', {});
      const url = await service.url();
      const { id, key } = await newKey();
      fakeYoutube.reset();
      const hold = fakeYoutube.hold({ kind: 'timedtext' });
      const responding = call(url, `/channels/@bench-3x${signal.length}/transcripts`, key);
      await hold.arrived;
      service.child.kill(signal);
      await until(() =>
        fetch(`${url}/health/live`).then(
          () => false,
          () => true,
        ),
      );
      hold.release();
      const response = await responding;
      expect(response.status).toBe(200);
      expect(((await response.json()) as { summary: unknown }).summary).toMatchObject({ fetched: 3 });
      expect(await service.exited).toEqual({ code: 0, signal: null });
      expect(await database.quota.usage(id)).toMatchObject({ used: 3, reserved: 0 });
    },
  );

  it('aborts calls that exceed the grace period, and still settles them and exits with 0', async () => {
    const service = run('main.js', { SHUTDOWN_GRACE_SECONDS: '0' });
    const url = await service.url();
    const { id, key } = await newKey();
    fakeYoutube.reset();
    const hold = fakeYoutube.hold({ kind: 'timedtext' });
    const answering = call(url, '/channels/@bench-3x17/transcripts', key).then((answer) => answer.text());
    await hold.arrived;
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    await expect(answering).rejects.toThrow();
    expect(await database.quota.usage(id)).toMatchObject({ used: 0, reserved: 0 });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('exits with 0 at %s during startup', async (signal) => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const requested = new Promise((resolve) => silent.once('connection', resolve));
    const { port } = silent.address() as AddressInfo;
    const service = run('main.js', { DATABASE_URL: `postgres://a:b@127.0.0.1:${port}/c` });
    await requested;
    expect(await service.stop(signal)).toEqual({ code: 0, signal: null });
    expect(service.stderr).toBe('');
    silent.close();
  });

  it('serves and charges exactly in two processes that start concurrently on one database', async () => {
    const empty = await createTestDatabase();
    const services = [run('main.js', { DATABASE_URL: empty.url }), run('main.js', { DATABASE_URL: empty.url })];
    const urls = await Promise.all(services.map((service) => service.url()));
    const fresh = await QuotaDatabase.open(empty);
    try {
      const { id, key } = await newKey(fresh, 7);
      fakeYoutube.reset();
      // Twenty channels of one video each: every call needs one count.
      const responses = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          admittedCall(urls[index % 2] ?? '', `/channels/@bench-1x${index + 30}/transcripts`, key),
        ),
      );
      const statuses = responses.map((answer) => answer.status).sort();
      expect(statuses).toEqual([...Array<number>(7).fill(200), ...Array<number>(13).fill(402)]);
      await Promise.all(responses.map((answer) => answer.arrayBuffer()));
      // Nothing ends before it is settled.
      await Promise.all(services.map((service) => service.stop()));
      expect(await fresh.quota.usage(id)).toMatchObject({ used: 7, reserved: 0 });
    } finally {
      await fresh.close();
    }
  });
});

describe('a failed start exits with 1 and prints one line for each reason', () => {
  it('for every invalid variable', async () => {
    const service = run('main.js', { PORT: 'http', LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://u:hunter2@db' });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    const lines = service.stderr.trim().split('\n');
    expect(lines).toHaveLength(3);
    expect(service.stderr).toMatch(/PORT .*\n.*DATABASE_URL .*\n.*LOG_LEVEL /);
    expect(service.stderr).not.toContain('hunter2');
  });

  it('for a port in use', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const service = run('main.js', { PORT: String((server.address() as AddressInfo).port) });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(service.stderr.trim().split('\n')).toHaveLength(1);
    expect(service.stderr).toMatch(/port is in use/);
    server.close();
  });

  it('for a database that does not respond, without its password', async () => {
    const service = run('main.js', { DATABASE_URL: 'postgres://app:hunter2@127.0.0.1:1/app' });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(service.stderr.trim().split('\n')).toHaveLength(1);
    expect(service.stderr).toContain('127.0.0.1');
    expect(service.stderr + service.stdout).not.toContain('hunter2');
  });
});

describe('a restart on the embedded database', () => {
  it('retains organizations, keys and usage in a consistent state, even after kill -9 during a call', async () => {
    const folder = temporaryFolder();
    const variables = { DATABASE_URL: '', DATA_DIR: folder.path };
    try {
      const first = run('main.js', variables);
      const url = await first.url();
      const { id = '' } = await json(
        run('cli.js', variables, 'org', 'create', '--name', 'Process', '--plan', 'pro', '--json'),
      );
      const { key = '' } = await json(run('cli.js', variables, 'key', 'issue', id, '--json'));
      fakeYoutube.reset();
      const whole = await call(url, '/channels/@tidewater/transcripts?limit=2', key);
      expect(await whole.json()).toMatchObject({ summary: { fetched: 2 } });
      const hold = fakeYoutube.hold({ kind: 'timedtext' });
      const cut = call(url, '/channels/@tidewater/transcripts?limit=5', key).then((answer) => answer.text());
      await hold.arrived;
      await first.stop('SIGKILL');
      await expect(cut).rejects.toThrow();
      hold.release();

      const second = run('main.js', variables);
      const again = await second.url();
      const usage = (await (await call(again, '/usage', key)).json()) as { used: number; reserved: number };
      // The reservation of the killed call lives until its lease ends, and was not charged.
      expect(usage).toMatchObject({ used: 2, reserved: 3 });
      const afterwards = await call(again, '/channels/@tidewater/transcripts?limit=1', key);
      expect(await afterwards.json()).toMatchObject({ summary: { fetched: 1 } });

      const third = run('main.js', variables);
      expect(await third.exited).toEqual({ code: 1, signal: null });
      expect(third.stderr.trim().split('\n')).toHaveLength(1);
      expect(third.stderr).toContain(folder.path);
      expect(await json(run('cli.js', variables, 'usage', id, '--json'))).toMatchObject({ used: 3 });
      expect(await second.stop()).toEqual({ code: 0, signal: null });
    } finally {
      folder.remove();
    }
  });
});
