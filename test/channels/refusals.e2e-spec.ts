import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ClientProxy } from '@nestjs/microservices';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { OrganizationsService } from '../../src/organizations/organizations.service.js';
import { startService, type ServiceResponse, type TestService, type TestOrganization } from '../harness/service.js';
import { clientOf, messageUrl, request } from '../messages/message-client.js';

describe('400, 403, 404 and 405', () => {
  const PATH = '/channels/@tidewater/transcripts';
  let service: TestService;
  let key: string;

  beforeAll(async () => {
    service = await startService();
    ({ key } = await service.organization());
  });
  afterAll(() => service.close());
  beforeEach(() => service.fakeYoutube.reset());

  /** Also that nothing was requested from the platform. */
  function expectRefusal({ status, headers, body }: ServiceResponse, wanted: number, code: string): void {
    expect([status, body?.error.code]).toEqual([wanted, code]);
    expect(body.error).toMatchObject({ retryable: false, requestId: headers['x-request-id'] });
    expect(headers['cache-control']).toBe('private, no-store');
    expect(service.fakeYoutube.requests.total).toBe(0);
  }

  const fieldsOf = ({ body }: ServiceResponse): string[] =>
    body.error.details.map(({ field }: { field: string }) => field) as string[];

  describe('a call without a valid key', () => {
    it.each([
      ['no header', {}, 'unauthorized'],
      ['another scheme', { Authorization: 'Basic dTpw' }, 'unauthorized'],
      ['a scheme and a space', { Authorization: 'Bearer ' }, 'unauthorized'],
      ['something else', { Authorization: 'Bearer abc' }, 'invalid_api_key'],
      ['a key cut short', { Authorization: `Bearer ctk_${'a'.repeat(48)}` }, 'invalid_api_key'],
      ['a key of letters beyond ASCII', { Authorization: `Bearer ctk_${'\u00e9'.repeat(49)}` }, 'invalid_api_key'],
    ])('(%s) is 401, before its plan, its parameters or its channel are checked', async (_what, headers, code) => {
      const response = await service.request('GET', '/channels/x!/transcripts?limit=0&cursor=1', headers);
      expectRefusal(response, 401, code);
      expect(response.headers['www-authenticate']).toBe('Bearer');
    });

    it('with a well-formed unknown key is refused, and the key is not echoed', async () => {
      const other = await startService();
      try {
        const answer = await other.get(PATH, key);
        expectRefusal(answer, 401, 'invalid_api_key');
        expect(answer.text + other.logs.join('')).not.toContain(key);
      } finally {
        await other.close();
      }
    });

    it('with a key that was revoked is refused on the next call', async () => {
      const organization = await service.organization();
      expect((await service.get('/usage', organization.key)).status).toBe(200);
      await service.app.get(ApiKeysService).revoke(organization.keyId);
      for (const path of ['/usage', PATH])
        expectRefusal(await service.get(path, organization.key), 401, 'invalid_api_key');
    });

    it('with a key that has expired is refused', async () => {
      const expired = await service.organization();
      await service.query(
        `UPDATE api_keys SET expires_at = clock_now() - interval '1 second' WHERE id = '${expired.keyId}'`,
      );
      expectRefusal(await service.get(PATH, expired.key), 401, 'invalid_api_key');
    });
  });

  describe('an organization on the free plan', () => {
    it('is refused with the required plan, and a changed plan applies from the next call on', async () => {
      const free = await service.organization({ plan: 'free' });
      const response = await service.get(PATH, free.key);
      expectRefusal(response, 403, 'feature_not_in_plan');
      expect(response.body.error).toMatchObject({
        message: 'Your organization is on the Free plan; this operation requires the Pro plan.',
        feature: 'channel_transcripts',
        plan: 'free',
        requiredPlan: 'pro',
      });
      const organizations = service.app.get(OrganizationsService);
      for (const [plan, status] of [
        ['pro', 200],
        ['free', 403],
      ] as const) {
        await organizations.change(free.id, { plan });
        expect((await service.get(PATH, free.key)).status).toBe(status);
      }
    });
  });

  describe('an invalid parameter', () => {
    it.each([
      ...['0', '-1', '1.5', '1e1', '1%20', '', '1%00', '1&limit=2'].map(
        (value) => [`limit=${value}`, 'limit'] as const,
      ),
      ['limit[]=1', 'limit'],
      ['cursor=abc', 'cursor'],
      ['Limit=5', 'Limit'],
      ['__proto__=1', '__proto__'],
      ['languages=', 'languages'],
      ['languages=en;de', 'languages'],
      ['languages=en&languages=de', 'languages'],
      ['languages[]=en', 'languages'],
    ])('%s is 400, naming %s, before any request to the platform', async (query, field) => {
      const response = await service.get(`${PATH}?${query}`, key);
      expectRefusal(response, 400, 'invalid_request');
      expect(fieldsOf(response)).toContain(field);
      expect(response.body.error.details[0].message.length).toBeGreaterThan(20);
    });

    it('is reported together with every other invalid parameter, and before an unknown channel', async () => {
      const response = await service.get('/channels/x!/transcripts?limit=x&cursor=1', key);
      expectRefusal(response, 400, 'invalid_request');
      expect(fieldsOf(response).sort()).toEqual(['cursor', 'limit']);
    });

    it.each([
      ['GET', PATH, 'lang=de', ['Did you mean languages?', 'Its parameters:', 'limit', 'since']],
      ['GET', PATH, '__proto__=1', ['Its parameters:', 'languages']],
      ['GET', '/usage', 'month=1', ['It takes no parameters here.']],
      ['POST', '/transcripts', 'limit=1', ['It takes no parameters here.']],
    ])('%s %s?%s that does not exist is 400 with the ones that do', async (method, path, query, words) => {
      const headers = { Authorization: `Bearer ${key}` };
      const response = await service.request(method, `${path}?${query}`, headers);
      expectRefusal(response, 400, 'invalid_request');
      for (const word of words) expect(response.body.error.details[0].message).toContain(word);
    });

    it.each(['/channels/%zz/transcripts', '/channels/%E0%A4/transcripts', '/%', '/usage%ff'])(
      'in the undecodable path %s is 400 before any other check, including the key',
      async (path) => expectRefusal(await service.request('GET', path), 400, 'invalid_request'),
    );
  });

  describe('a channel that cannot be resolved', () => {
    it.each([
      'UC',
      '@',
      'x!',
      '%00',
      'https%3A%2F%2Fexample.com%2F@tidewater',
      'https://example.com/@tidewater',
      'http%3A%2F%2F169.254.169.254%2Flatest%2Fmeta-data',
      'file:///etc/passwd',
      'https%3A%2F%2Fwww.youtube.com%2Fwatch%3Fv%3Dhl-dinghy__',
      'https://www.youtube.com/shorts/hl-bowline_',
      '..%2F..%2Fadmin',
      encodeURIComponent(`https://www.youtube.com/@tidewater?x=${'y'.repeat(2100)}`),
    ])('%s is 404 without an outgoing request', async (reference) => {
      expectRefusal(await service.get(`/channels/${reference}/transcripts`, key), 404, 'channel_not_found');
    });

    it.each([
      '@no-such-channel',
      'https%3A%2F%2Fwww.youtube.com%2Fc%2Fnobody',
      'UC0000000000000000000000',
      '@sunkentrawler',
    ])('%s, which is deleted or unknown on the platform, is 404', async (reference) => {
      const answer = await service.get(`/channels/${reference}/transcripts`, key);
      expect([answer.status, answer.body?.error.code]).toEqual([404, 'channel_not_found']);
    });
  });

  describe('an unknown path', () => {
    it.each(['/', '/channels', '/channels/@tidewater', '/channels/@tidewater/transcript', '/admin'])(
      '%s is 404 in the envelope',
      async (path) => expectRefusal(await service.request('GET', path), 404, 'not_found'),
    );
  });

  describe('a method other than GET', () => {
    it.each(['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])(
      '%s on the operation is 405 with Allow, with and without a key, and costs nothing',
      async (method) => {
        for (const path of [PATH, '/channels/https://www.youtube.com/@tidewater/transcripts?limit=x']) {
          for (const headers of [{}, { Authorization: `Bearer ${key}` }] as Record<string, string>[]) {
            const response = await service.request(method, path, headers);
            expect([response.status, response.headers.allow]).toEqual([405, 'GET']);
            if (method !== 'HEAD') expectRefusal(response, 405, 'method_not_allowed');
          }
        }
        expect(service.fakeYoutube.requests.total).toBe(0);
        expect((await service.get('/usage', key)).body).toMatchObject({ used: 0, reserved: 0 });
      },
    );

    it('is 405 on the other routes too, which allow HEAD', async () => {
      for (const path of ['/usage', '/docs', '/docs-json', '/health/ready']) {
        const refused = await service.request('POST', path);
        expect([path, refused.status, refused.headers.allow]).toEqual([path, 405, 'GET, HEAD']);
      }
      for (const path of ['/docs', '/docs-json']) expect((await service.request('GET', path)).status).toBe(200);
      expect((await service.request('HEAD', '/health/live')).status).toBe(200);
    });
  });

  describe('a request that Node refuses', () => {
    it.each([
      ['that is not HTTP', 'HELLO\r\n\r\n', 400],
      ['with a malformed header', 'GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n', 400],
      ['with two hosts', 'GET /usage HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
      ['with letters that are not encoded', 'GET /channels/@h\u00e4fen HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['with headers of 20 KB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      ['with two lengths', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 400],
    ])('%s gets the envelope too', async (_what, raw, status) => {
      const [head = '', body = ''] = (await sendRaw(raw)).split('\r\n\r\n');
      expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*x-request-id: `, 'is'));
      expect((JSON.parse(body) as { error: unknown }).error).toMatchObject({
        code: 'invalid_request',
        retryable: false,
      });
    });
  });

  function sendRaw(raw: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(service.url).port), '127.0.0.1', () => socket.write(raw));
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk.toString();
        // A refusal that leaves the connection open has a complete body by now.
        if (/\r\n\r\n.*\}$/s.test(text)) socket.end();
      });
      socket.once('close', () => resolve(text));
      socket.once('error', reject);
    });
  }
});

describe('401', () => {
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
});
