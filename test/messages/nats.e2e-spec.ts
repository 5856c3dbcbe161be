import { afterAll, beforeAll, describe, expect, it, afterEach } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import type { Environment } from '../../src/config/environment.js';
import { shutDown } from '../../src/bootstrap.js';
import { ResponseMemory } from '../../src/transcripts/delivery/response-memory.js';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { request, clientOf, messageUrl, type MessageReply } from './message-client.js';
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

const AT_ONCE = 8;

const FLOOD = 600;

describe.each(natsIsInstalled ? (['tcp', 'nats'] as const) : (['tcp'] as const))(
  'a flood of messages over %s',
  (transport) => {
    let broker: NatsBroker | undefined;
    let service: TestService;
    let flooding: ClientProxy;
    let other: ClientProxy;

    beforeAll(async () => {
      broker = transport === 'nats' ? await NatsBroker.start() : undefined;
      service = await startService({
        environment: {
          MESSAGE_TRANSPORT: transport,
          MESSAGE_PORT: 0,
          NATS_URL: broker && [broker.url],
          CALLS_PER_KEY: 0,
          CALLS_PER_ORGANIZATION: 0,
          CALLS_PER_PROCESS: AT_ONCE,
          RATE_LIMIT_PER_MINUTE: 0,
        },
      });
      flooding = clientOf(messageUrl(service));
      other = clientOf(messageUrl(service));
    });
    afterAll(async () => {
      await Promise.all([flooding.close(), other.close()]);
      await service.close();
      await broker?.close();
    });
    afterEach(() => service.fakeYoutube.reset());

    const lines = (code: string, from = 0): { repeated?: number; address?: string }[] =>
      service.logs
        .slice(from)
        .filter((line) => line.includes('"event":"message"') && line.includes(`"code":"${code}"`))
        .map((line) => JSON.parse(line) as { repeated?: number });
    const codesOf = (replies: MessageReply[]) => replies.map(({ error }): unknown => error?.error.code);

    it('of one customer takes half of the places, and the rest is refused at once, before any look-up', async () => {
      const { key: apiKey } = await service.organization();
      const { key: otherKey } = await service.organization();
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, AT_ONCE / 2);
      const held = Array.from({ length: AT_ONCE / 2 }, (_, index) =>
        request(flooding, { apiKey, id: `@1-videos-no-${index + 300}` }),
      );
      await hold.arrived;
      const refused = await Promise.all(
        Array.from({ length: FLOOD }, () => request(flooding, { apiKey, id: '@emptyslip' })),
      );
      expect(new Set(codesOf(refused))).toEqual(new Set(['service_unavailable']));
      expect(refused[0]?.error.error).toMatchObject({ retryable: true, retryAfterSeconds: 2 });
      expect(refused[0]?.error.error.message).toContain('at capacity');
      // Another connection (TCP), another subject (NATS), and HTTP have places.
      const pattern = transport === 'tcp' ? 'channels.transcripts' : 'channels.uploads';
      expect((await request(other, { apiKey: otherKey, id: '@emptyslip' }, pattern)).error).toBeUndefined();
      expect((await service.get('/channels/@emptyslip/transcripts', otherKey)).status).toBe(200);
      hold.release();
      for (const { events } of await Promise.all(held)) expect(events.at(-1)?.type).toBe('summary');
      expect((await request(flooding, { apiKey, id: '@emptyslip' })).error).toBeUndefined();
      const counted = () => lines('service_unavailable').reduce((sum, { repeated = 1 }) => sum + repeated, 0);
      await until(() => counted() >= FLOOD);
      expect(lines('service_unavailable').length).toBeLessThan(FLOOD / 10);
    });

    // Over NATS callers have no address: they would lock out one another.
    const expected = transport === 'tcp' ? 'rate_limited' : 'invalid_api_key';
    it(`counts as failed authentications over TCP, also what is refused unread: a wrong key is ${expected}`, async () => {
      const { key: apiKey } = await service.organization();
      const hold = service.fakeYoutube.hold({ kind: 'timedtext' }, AT_ONCE / 2);
      const held = Array.from({ length: AT_ONCE / 2 }, (_, index) =>
        request(flooding, { apiKey, id: `@1-videos-no-${index + 320}` }),
      );
      await hold.arrived;
      await Promise.all(Array.from({ length: 21 }, () => request(flooding, { id: '@emptyslip' })));
      const pattern = transport === 'tcp' ? 'channels.transcripts' : 'channels.uploads';
      expect(codesOf([await request(other, { apiKey: `${apiKey}x`, id: '@emptyslip' }, pattern)])).toEqual([expected]);
      hold.release();
      await Promise.all(held);
    });

    it('without a key writes a line and a count', async () => {
      const before = service.logs.length;
      await Promise.all(Array.from({ length: FLOOD }, () => request(other, { id: '@emptyslip' })));
      const all = () => ['unauthorized', 'rate_limited', 'service_unavailable'].flatMap((code) => lines(code, before));
      await until(() => all().reduce((sum, { repeated = 1 }) => sum + repeated, 0) >= FLOOD);
      expect(all().length).toBeLessThan(FLOOD / 10);
      const refused = ['unauthorized', 'rate_limited'].flatMap((code) => lines(code, before));
      for (const { address } of refused) expect(address).toBe(transport === 'tcp' ? '127.0.0.1' : undefined);
    });
  },
);
