import { Agent, request as httpRequest } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startFakeYoutube, type FakeYoutube } from '../fake-youtube/fake-youtube.js';
import { QuotaDatabase } from '../quota/quota-database.js';
import { until } from '../until.js';
import { Program } from './program.js';

const DELAY_SECONDS = 3;

let fakeYoutube: FakeYoutube;
let database: QuotaDatabase;
let service: Program;

beforeAll(async () => {
  fakeYoutube = await startFakeYoutube();
  database = await QuotaDatabase.open();
});
afterAll(async () => {
  await fakeYoutube.close();
  await database.close();
});
afterEach(async () => {
  await service.stop('SIGKILL');
});

async function start(): Promise<string> {
  service = Program.run('main.js', {
    DATABASE_URL: database.url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    SHUTDOWN_DELAY_SECONDS: String(DELAY_SECONDS),
    UPSTREAM_CONCURRENCY: '64',
    CALLS_PER_KEY: '0',
    RATE_LIMIT_PER_MINUTE: '0',
  });
  return service.url();
}

async function newKey(): Promise<{ id: string; key: string }> {
  const { id } = await database.organizations.create({ name: 'Shutdown', plan: 'pro', monthlyLimit: null });
  const { key } = await database.keys.issue({ organizationId: id });
  return { id, key };
}

interface Whole {
  status: number;
  body: { summary: { total: number; fetched: number } };
}

/** Rejects when the response is incomplete. */
function call(url: string, key: string, agent: Agent | false): Promise<Whole> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { agent, headers: { Authorization: `Bearer ${key}` } }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Whole['body'];
        resolve({ status: response.statusCode ?? 0, body });
      });
    });
    request.once('error', reject);
    request.end();
  });
}

const readiness = (url: string): Promise<number | 'refused'> =>
  fetch(`${url}/health/ready`, { headers: { Connection: 'close' } }).then(
    (response) => response.arrayBuffer().then(() => response.status),
    () => 'refused' as const,
  );

describe('a service that receives SIGTERM', () => {
  it('reports not ready before it refuses connections, and drops no response under load behind a load balancer', async () => {
    const url = await start();
    await until(async () => (await readiness(url)) === 200);
    const { id, key } = await newKey();
    const cached = `${url}/channels/@tidewater/transcripts?limit=3`;
    const primed = (await call(cached, key, false)).body.summary.fetched;
    const slow = 20;
    const hold = fakeYoutube.hold({ kind: 'timedtext' }, slow);
    const held = Array.from({ length: slow }, (_, index) =>
      call(`${url}/channels/@bench-1x${index + 60}/transcripts`, key, false),
    );
    await hold.arrived;

    // Keep-alive connections with sequential requests, for as long as the balancer sends any.
    let sending = true;
    const responses: Whole[] = [];
    const agent = new Agent({ keepAlive: true, maxSockets: 12 });
    const client = async (): Promise<void> => {
      while (sending) responses.push(await call(cached, key, agent));
    };
    const clients = Array.from({ length: 12 }, client);
    await until(() => responses.length > 50);
    service.child.kill('SIGTERM');
    await until(async () => (await readiness(url)) === 503);
    // The balancer checks readiness once more before it stops sending.
    const seenAfter = responses.length;
    // On a new connection.
    responses.push(await call(cached, key, false));
    await until(() => responses.length > seenAfter + 24);
    sending = false;
    await Promise.all(clients);
    await until(async () => (await readiness(url)) === 'refused');
    hold.release();
    responses.push(...(await Promise.all(held)));

    expect(responses.filter(({ status }) => status !== 200)).toEqual([]);
    const fetched = responses.reduce((sum, { body }) => sum + body.summary.fetched, primed);
    expect(fetched).toBe(primed + slow);
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(await database.quota.usage(id)).toMatchObject({ used: fetched, reserved: 0 });
    agent.destroy();
  });
});
