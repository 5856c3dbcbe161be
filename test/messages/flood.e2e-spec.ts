import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { clientOf, messageUrl, request, type MessageReply } from './message-client.js';
import { NatsBroker, natsIsInstalled } from './nats-broker.js';

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
