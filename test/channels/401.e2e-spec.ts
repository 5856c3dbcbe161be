import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import { clientOf, messageUrl, request } from '../messages/message-client.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';

const ADMIN_TOKEN = 'an-admin-token-of-these-tests-73be20';
const METRICS_TOKEN = 'a-metrics-token-of-these-tests-5d9104';

let service: TestService;
let client: ClientProxy;
let organization: TestOrganization;

beforeAll(async () => {
  service = await startService({
    environment: { ADMIN_TOKEN, METRICS_TOKEN, TRUST_PROXY: 'loopback', MESSAGE_TRANSPORT: 'tcp', MESSAGE_PORT: 0 },
  });
  client = clientOf(messageUrl(service));
  organization = await service.organization();
});
afterAll(async () => {
  await client.close();
  await service.close();
});

/** Each from its own address, because failures are limited by address. */
let lastAddress = 0;
async function errorOf(path: string, credential: string, method = 'GET'): Promise<{ code: string; message: string }> {
  const address = { 'X-Forwarded-For': `203.0.113.${(lastAddress += 1)}` };
  const headers = { ...address, 'Content-Type': 'application/json', Authorization: `Bearer ${credential}` };
  const { status, body } = await service.request(method, path, headers, method === 'POST' ? '{}' : undefined);
  expect(status).toBe(401);
  return body.error as { code: string; message: string };
}

const REFUSED = 'This API key is malformed, unknown, revoked or expired.';
const MISTAKES: [what: string, sent: (organization: TestOrganization) => string, words: RegExp][] = [
  ['the scheme twice', ({ key }) => `Bearer ${key}`, /"Bearer Bearer ctk_…"/],
  ['the scheme twice, in quotes', ({ key }) => `"Bearer ${key}"`, /"Bearer Bearer ctk_…"/],
  ['a key in quotes', ({ key }) => `"${key}"`, /quotes, spaces or a line break/],
  ['a key and an escaped line break', ({ key }) => `${key}\\n`, /quotes, spaces or a line break/],
  ['the ID of the key', ({ keyId }) => keyId, /ID of a key/],
  ['the ID of the organization', ({ id }) => id, /ID of an organization/],
  ['the first characters of the key', ({ key }) => key.slice(0, 10), /first characters/],
  ['a variable that the shell did not replace', () => '$KEY', /placeholder/],
  ['the placeholder of the documentation', () => '<API_KEY>', /placeholder/],
];

describe('a key that was copied wrongly is refused with the mistake in words, and is not repeated', () => {
  it.each(MISTAKES)('%s', async (_what, sent, words) => {
    const credential = sent(organization);
    for (const [method, path] of [
      ['GET', '/channels/@tidewater/transcripts'],
      ['POST', '/mcp'],
    ] as const) {
      const { code, message } = await errorOf(path, credential, method);
      expect([code, message.slice(0, REFUSED.length)]).toEqual(['invalid_api_key', REFUSED]);
      expect(message).toMatch(words);
      for (const secret of Object.values(organization)) expect(message).not.toContain(secret);
    }
  });

  it('also in a message', async () => {
    for (const [sent, words] of [
      [`Bearer ${organization.key}`, /"Bearer Bearer ctk_…"/],
      [`${organization.key}\n`, /line break/],
    ] as const) {
      const { error } = await request(client, { apiKey: sent, id: '@tidewater' });
      expect(error).toMatchObject({ error: { code: 'invalid_api_key', message: expect.stringMatching(words) } });
    }
  });

  it('also the token of an operator', async () => {
    for (const [path, token] of [
      ['/admin/organizations', ADMIN_TOKEN],
      ['/metrics', METRICS_TOKEN],
    ] as const) {
      const { code, message } = await errorOf(path, `Bearer ${token}`);
      expect([code, message]).toEqual(['unauthorized', expect.stringContaining('"Bearer Bearer')]);
    }
  });

  it('and a key without a visible mistake with these words alone', async () => {
    const unknown = `ctk_${'a'.repeat(49)}`;
    expect(await errorOf('/usage', unknown)).toMatchObject({ code: 'invalid_api_key', message: REFUSED });
    expect(await errorOf('/usage', 'abc')).toMatchObject({ code: 'invalid_api_key', message: REFUSED });
  });
});
