import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import { clientOf, messageUrl, request } from '../messages/message-client.js';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
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

const REFUSED = 'This is not an API key, or was not copied exactly.';
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

  it('and what has no visible mistake with these words alone', async () => {
    for (const sent of [`ctk_${'a'.repeat(49)}`, 'abc'])
      expect(await errorOf('/usage', sent)).toEqual(
        expect.objectContaining({ code: 'invalid_api_key', message: REFUSED }),
      );
  });
});

describe('a key that has the form of one', () => {
  it.each<[string, (key: string, id: string) => Promise<unknown>, string]>([
    [
      'that was revoked',
      (_key, id) => service.app.get(ApiKeysService).revoke(id),
      'This API key was revoked. Use another one.',
    ],
    [
      'that has expired',
      (_key, id) => service.query(`UPDATE api_keys SET expires_at = clock_now() WHERE id = '${id}'`),
      'This API key has expired. Use another one.',
    ],
    [
      'of a deleted organization',
      (_key, id) =>
        service.query(`UPDATE organizations SET deleted_at = clock_now()
          WHERE id = (SELECT organization_id FROM api_keys WHERE id = '${id}')`),
      'This API key was revoked. Use another one.',
    ],
    [
      'that matches nothing',
      (_key, id) => service.query(`UPDATE api_keys SET hash = decode(repeat('00', 32), 'hex') WHERE id = '${id}'`),
      'No API key of this service is equal to this one. Check that it was issued by this service.',
    ],
  ])('%s is refused with this reason', async (_what, change, message) => {
    const { key, keyId } = await service.organization();
    await change(key, keyId);
    expect(await errorOf('/usage', key)).toMatchObject({ code: 'invalid_api_key', message });
    expect((await request(client, { apiKey: key, id: '@tidewater' })).error).toMatchObject({ error: { message } });
  });
});

describe('a credential of another kind', () => {
  const token = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.e30.c2lnbmF0dXJl`;

  it.each<[string, string, () => string, string]>([
    ['the admin token to callers', '/usage', () => ADMIN_TOKEN, REFUSED],
    ['an access token to callers', '/usage', () => token, 'This is an access token. Use an API key instead.'],
    [
      'a key to operators',
      '/admin/organizations',
      () => organization.key,
      'This is an API key. Use the admin token instead.',
    ],
    [
      'an access token to operators',
      '/admin/organizations',
      () => token,
      'This is an access token. Use the admin token instead.',
    ],
    ['a key to Prometheus', '/metrics', () => organization.key, 'This is an API key. Use the metrics token instead.'],
  ])('(%s) is named', async (_what, path, sent, message) => {
    expect((await errorOf(path, sent())).message).toBe(message);
  });

  it.each([
    ['/admin/organizations', 'the admin token'],
    ['/metrics', 'the metrics token'],
  ])('or a wrong one to %s is told from none', async (path, expected) => {
    expect((await errorOf(path, 'wrong')).message).toBe(`This is not ${expected}, or was not copied exactly.`);
    expect((await errorOf(path, '')).message).toMatch(`Send ${expected} in the header "Authorization: Bearer <`);
  });
});
