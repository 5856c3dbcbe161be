import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import type { Environment } from '../../src/config/environment.js';
import { shutDown } from '../../src/bootstrap.js';
import { ResponseMemory } from '../../src/transcripts/delivery/response-memory.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { request, clientOf } from './message-client.js';
import { NatsBroker, natsIsInstalled } from './nats-broker.js';

const EVENT_BYTES_MAX = 16 * 1024;

// Skipped without a NATS server; continuous integration installs it.
(natsIsInstalled ? describe : describe.skip)('two services of one queue group on NATS', () => {
  let broker: NatsBroker;
  let services: [TestService, TestService];
  let client: ClientProxy;

  beforeAll(async () => {
    broker = await NatsBroker.start([`max_payload: ${EVENT_BYTES_MAX}`]);
    const messages = {
      MESSAGE_TRANSPORT: 'nats',
      NATS_URL: [broker.url],
      CALLS_PER_KEY: 0,
      CALLS_PER_ORGANIZATION: 0,
      RATE_LIMIT_PER_MINUTE: 0,
    } satisfies Partial<Environment>;
    const first = await startService({ environment: messages });
    const shared = { DATABASE_URL: first.databaseUrl, YOUTUBE_BASE_URL: first.fakeYoutube.url };
    services = [first, await startService({ environment: { ...messages, ...shared } })];
    client = clientOf(new URL(broker.url));
  });
  afterAll(async () => {
    await client.close();
    await services[1].close();
    await services[0].close();
    await broker.close();
  });

  /** The log of both services: in one process Nest logs through the service that was created last. */
  const responded = (): number => services[1].logs.filter((line) => line.includes('"event":"message"')).length;

  it('reply to each message exactly once', async () => {
    const { key } = await services[0].organization();
    const responses = await Promise.all(
      Array.from({ length: 30 }, (_, index) => request(client, { apiKey: key, id: `@1-videos-no-${index + 20}` })),
    );
    for (const { events, error } of responses) {
      expect(error).toBeUndefined();
      expect(events.map((event) => event.type)).toEqual(['channel', 'result', 'summary']);
    }
    expect((await services[0].get('/usage', key)).body).toMatchObject({ used: 30, reserved: 0 });
    await until(() => responded() === 30);
  });

  it('end a reply with an error when an event exceeds the server’s limit, and never omit it', async () => {
    const { key } = await services[0].organization();
    const { events, error } = await request(client, { apiKey: key, id: '@bench-1x1500' });
    expect(events.map((event) => event.type)).toEqual(['channel']);
    expect(error.error).toMatchObject({ code: 'internal_error', retryable: false });
    expect(error.error.message).toContain('max_payload');
    // It was fetched and cached, so the call over HTTP is free.
    await until(async () => (await services[0].get('/usage', key)).body.used === 1);
  });

  it('keep nothing in memory of the entry of a video that exceeds the limit', async () => {
    const { key } = await services[0].organization();
    const [{ videoId }] = (await services[0].get('/channels/@bench-1x1501/uploads', key)).body.uploads as [
      { videoId: string },
    ];
    const { events, error } = await request(client, { apiKey: key, id: videoId }, 'videos.transcript');
    expect([events, error.error.code]).toEqual([[], 'internal_error']);
    await until(() => services.every(({ app }) => app.get(ResponseMemory).heldBytes === 0));
    await until(async () => (await services[0].get('/usage', key)).body.used === 1);
  });

  it('name a NATS server that is unavailable, and serve HTTP meanwhile', async () => {
    const gone = await NatsBroker.start();
    const service = await startService({ environment: { MESSAGE_TRANSPORT: 'nats', NATS_URL: [gone.url] } });
    try {
      const ready = async (): Promise<any> => (await service.request('GET', '/health/ready')).body;
      expect(await ready()).toMatchObject({
        status: 'ok',
        dependencies: { messages: { status: 'up', critical: false } },
      });
      await gone.close();
      await until(async () => (await ready()).status === 'degraded');
      expect((await ready()).dependencies.messages).toEqual({ status: 'down', critical: false });
      expect((await service.request('GET', '/health/ready')).status).toBe(200);
      const lines = service.logs.filter((line) => line.includes('"event":"messages_disconnected"'));
      expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([{ level: 'error' }]);
      const { text } = await service.request('GET', '/metrics');
      expect(text).toContain('ct_dependency_up{dependency="messages",critical="false"} 0');
      const { key } = await service.organization();
      expect((await service.get('/channels/@emptyslip/transcripts', key)).status).toBe(200);
    } finally {
      await service.close();
    }
  });

  it('leave new messages to the other service at shutdown, and reply to the messages they have received', async () => {
    const { key } = await services[0].organization();
    const hold = services[0].fakeYoutube.hold({ kind: 'timedtext' }, 8);
    const running = Array.from({ length: 8 }, (_, index) =>
      request(client, { apiKey: key, id: `@1-videos-no-${index + 60}` }),
    );
    await hold.arrived;
    const stopped = shutDown(services[1].app, { graceSeconds: 30 });
    hold.release();
    for (const { events } of await Promise.all(running)) expect(events.at(-1)?.type).toBe('summary');
    await stopped;
    // The stopped service has no database connection, so these replies come from the other one.
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => request(client, { apiKey: key, id: '@emptyslip' })),
    );
    expect(answers.filter(({ error }) => error !== undefined)).toEqual([]);
  });
});
