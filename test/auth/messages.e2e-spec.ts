import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import { startService, type TestService } from '../harness/service.js';
import { clientOf, messageUrl, request } from '../messages/message-client.js';
import { NatsBroker, natsIsInstalled } from '../messages/nats-broker.js';
import { AUDIENCE, TestIdentityProvider } from './identity-provider.js';

describe.each(natsIsInstalled ? (['tcp', 'nats'] as const) : (['tcp'] as const))(
  'a message over %s',
  (MESSAGE_TRANSPORT) => {
    let provider: TestIdentityProvider;
    let broker: NatsBroker | undefined;
    let service: TestService;
    let client: ClientProxy;
    beforeAll(async () => {
      provider = await TestIdentityProvider.start([{ id: 'reports', claims: { org_id: 'acme' } }]);
      broker = MESSAGE_TRANSPORT === 'nats' ? await NatsBroker.start() : undefined;
      const messages = { MESSAGE_TRANSPORT, MESSAGE_PORT: 0, NATS_URL: broker && [broker.url] };
      service = await startService({
        environment: { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, ...messages },
      });
      const { id } = await service.organization();
      await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${id}'`);
      client = clientOf(messageUrl(service));
    });
    afterAll(async () => {
      await client.close();
      await service.close();
      await broker?.close();
      await provider.stop();
    });

    it('has the token in the place of the API key', async () => {
      const { events, error } = await request(client, {
        apiKey: await provider.token('reports'),
        id: '@2-videos-no-1',
      });
      expect([error, events.at(-1)?.summary]).toEqual([undefined, expect.objectContaining({ fetched: 2 })]);
    });

    it('with a token that is not accepted gets the error of the HTTP response', async () => {
      const expired = await provider.sign({ client_id: 'reports', org_id: 'acme', exp: 1 });
      const stranger = await provider.sign({ client_id: 'reports', org_id: 'nobody' });
      for (const [apiKey, code] of [
        [expired, 'invalid_token'],
        [stranger, 'organization_not_linked'],
      ])
        expect((await request(client, { apiKey, id: '@2-videos-no-1' })).error).toMatchObject({ error: { code } });
      expect(service.logs.join('')).not.toContain(expired.split('.')[2]);
    });
  },
);
