import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { AUDIENCE, TestIdentityProvider } from './identity-provider.js';

describe('persons', () => {
  const ADMIN_TOKEN = 'an-admin-token-of-the-tests-9d4b';
  const OIDC_ADMIN_CLAIM = { claim: 'roles', value: 'transcripts-admin' };
  let provider: TestIdentityProvider;
  let service: TestService;

  beforeAll(async () => {
    provider = await TestIdentityProvider.start([{ id: 'deploy', claims: { roles: ['transcripts-admin', 'other'] } }]);
    const oidc = { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, OIDC_ADMIN_CLAIM };
    service = await startService({ environment: { ADMIN_TOKEN, ...oidc, TRUST_PROXY: '1' } });
  });

  afterAll(async () => {
    await provider.stop();
    await service.close();
  });
  let addresses = 0;

  function admin(
    token: string,
    method = 'GET',
    path = '/organizations',
    body?: object,
    address = `192.0.2.${(addresses += 1)}`,
  ): Promise<ServiceResponse> {
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'X-Forwarded-For': address,
    };
    return service.request(method, `/admin${path}`, headers, body && JSON.stringify(body));
  }

  const ada = (more: object = {}) =>
    provider.sign({ sub: 'ada', azp: 'console', email: 'ada@example.com', roles: ['transcripts-admin'], ...more });

  async function create(token: string): Promise<unknown> {
    const { status, body } = await admin(token, 'POST', '/organizations', { name: 'Acme', plan: 'free' });
    expect(status).toBe(201);
    const { entries } = (await admin(ADMIN_TOKEN, 'GET', `/audit?organization=${body.id}`)).body;
    return entries;
  }

  describe('/admin', () => {
    it('is open to tokens with the claim, and the audit trail has the person', async () => {
      const [actor, action] = ['admin', 'organization.created'];
      const person = { sub: 'ada', email: 'ada@example.com' };
      expect(await create(await ada())).toEqual([expect.objectContaining({ actor, action, person })]);
      expect(await create(await ada({ roles: 'transcripts-admin', email: undefined }))).toEqual([
        expect.objectContaining({ actor, action, person: { sub: 'ada', email: null } }),
      ]);
      expect(await create(await provider.token('deploy'))).toEqual([
        expect.objectContaining({ actor, action, person: { sub: 'deploy', email: null } }),
      ]);
      expect(await create(ADMIN_TOKEN)).toEqual([expect.objectContaining({ actor, action, person: null })]);
      expect(service.logs.some((line) => line.includes('"sub":"ada"'))).toBe(true);
      expect(service.logs.join('')).not.toContain('ada@example.com');
    });

    it('names the person who cancels a job', async () => {
      const { id: organizationId } = (await admin(ADMIN_TOKEN, 'POST', '/organizations', { name: 'Jobs', plan: 'pro' }))
        .body;
      const { id: keyId } = (await admin(ADMIN_TOKEN, 'POST', `/organizations/${organizationId}/keys`, {})).body;
      const request = { languages: [], limit: null, since: null, onQuota: 'pause', channel: '@tidewater' } as const;
      const payer = { organizationId: String(organizationId), keyId: String(keyId), requestId: 'test' };
      const { id } = await service.app.get(JobsService).create(request, payer);
      for (const token of [await ada(), await ada()])
        expect((await admin(token, 'POST', `/jobs/${id}/cancel`)).status).toBe(200);
      const { entries } = (await admin(ADMIN_TOKEN, 'GET', `/audit?organization=${organizationId}&limit=1`)).body;
      const person = { sub: 'ada', email: 'ada@example.com' };
      expect(entries).toEqual([expect.objectContaining({ action: 'job.canceled', target: id, person })]);
    });

    it('is closed to a client that is blocked there, before its first call, until it is unblocked', async () => {
      const outcome = async (azp: string): Promise<string> => {
        const { status, body } = await admin(await ada({ azp }));
        return `${status} ${String(body.error?.code)}`;
      };
      const change = (blocked: boolean) => admin(ADMIN_TOKEN, 'PATCH', '/clients', { client: ' unused ', blocked });
      for (const [blocked, expected] of [
        [true, '403 client_blocked'],
        [true, '403 client_blocked'],
        [false, '200 undefined'],
        [false, '200 undefined'],
      ] as const) {
        expect(await change(blocked)).toMatchObject({ status: 200, body: { client: 'unused', blocked } });
        expect(await outcome('unused')).toBe(expected);
        expect(await outcome('console')).toBe('200 undefined');
      }
      const { entries } = (await admin(ADMIN_TOKEN, 'GET', '/audit?limit=2')).body;
      expect(entries).toEqual([
        expect.objectContaining({ action: 'client.unblocked', target: 'unused', organizationId: null }),
        expect.objectContaining({ action: 'client.blocked', target: 'unused', organizationId: null }),
      ]);
      for (const body of [{}, { client: '', blocked: true }, { client: 'x', blocked: 'yes' }])
        expect((await admin(ADMIN_TOKEN, 'PATCH', '/clients', body)).status).toBe(400);
    });

    it('and an organization block a client each for itself', async () => {
      const { id } = (await admin(ADMIN_TOKEN, 'POST', '/organizations', { name: 'D', plan: 'free', externalId: 'd' }))
        .body;
      const usage = async (): Promise<unknown> => {
        const { status, body } = await service.get('/usage', await ada({ org_id: 'd', azp: 'shared' }));
        return body.error?.code ?? status;
      };
      const asAdmin = async (): Promise<unknown> => (await admin(await ada({ azp: 'shared' }))).body.error?.code;
      expect([await usage(), await asAdmin()]).toEqual([200, undefined]);
      const { keys } = (await admin(ADMIN_TOKEN, 'GET', `/organizations/${id}/keys`)).body as {
        keys: { id: string }[];
      };
      await admin(ADMIN_TOKEN, 'DELETE', `/keys/${keys[0]?.id}`);
      expect([await usage(), await asAdmin()]).toEqual(['client_blocked', undefined]);
      await admin(ADMIN_TOKEN, 'POST', `/keys/${keys[0]?.id}/unblock`);
      await admin(ADMIN_TOKEN, 'PATCH', '/clients', { client: 'shared', blocked: true });
      expect([await usage(), await asAdmin()]).toEqual([200, 'client_blocked']);
    });

    it('stays open to a client whose organization is deleted', async () => {
      const { id } = (await admin(ADMIN_TOKEN, 'POST', '/organizations', { name: 'C', plan: 'free', externalId: 'c' }))
        .body;
      const token = await ada({ org_id: 'c', azp: 'bystander' });
      expect((await service.get('/usage', token)).status).toBe(200);
      expect((await admin(ADMIN_TOKEN, 'DELETE', `/organizations/${id}`)).body.revokedKeys).toBe(0);
      expect((await admin(token)).status).toBe(200);
      expect((await service.get('/usage', token)).body.error.code).toBe('organization_not_linked');
    });

    it.each<[string, object, number, string]>([
      ['without the claim', { roles: undefined }, 403, 'admin_role_required'],
      ['with other values', { roles: ['transcripts-admins', 'admin'] }, 403, 'admin_role_required'],
      ['with the value within a text', { roles: 'no transcripts-admin' }, 403, 'admin_role_required'],
      ['for another audience', { aud: 'other' }, 401, 'invalid_token'],
      ['that has expired', { exp: 1 }, 401, 'invalid_token'],
      ['without a client', { azp: undefined }, 401, 'invalid_token'],
      ['that names nobody', { sub: undefined }, 401, 'invalid_token'],
    ])('is closed to tokens %s', async (_name, claims, status, code) => {
      const response = await admin(await ada(claims));
      expect([response.status, response.body.error.code]).toEqual([status, code]);
    });

    it('counts tokens that are not accepted as failures, and never throttles accepted ones', async () => {
      const token = await ada({ roles: [] });
      const statuses: number[] = [];
      for (let count = 0; count < 21; count += 1)
        statuses.push((await admin(token, 'GET', '/organizations', undefined, '198.51.100.3')).status);
      expect(statuses).toEqual([...Array<number>(20).fill(403), 429]);
      for (const accepted of [ADMIN_TOKEN, await ada()])
        expect((await admin(accepted, 'GET', '/organizations', undefined, '198.51.100.3')).status).toBe(200);
    });

    it('counts wrong tokens in the metrics', async () => {
      const failures = async (reason: string): Promise<number> => {
        const { text } = await service.request('GET', '/metrics');
        return Number(
          new RegExp(`^ct_failed_authentications_total\\{reason="${reason}"\\} (.*)$`, 'm').exec(text)?.[1],
        );
      };
      for (const [reason, token] of [
        ['no_admin_token', 'a-wrong-token'],
        ['invalid_token', await ada({ aud: 'other' })],
        ['admin_role_required', await ada({ roles: [] })],
      ] as const) {
        const before = await failures(reason);
        await admin(token);
        expect([reason, await failures(reason)]).toEqual([reason, before + 1]);
      }
    });

    it('gives no access to what customers call', async () => {
      const { status, body } = await service.get('/usage', await ada());
      expect([status, body.error.code]).toEqual([403, 'organization_not_linked']);
    });
  });

  describe('the 401 of /admin', () => {
    it('names what may be sent', async () => {
      const { body } = await admin('');
      expect(body.error.message).toMatch(/^Send the admin token or an access token in the header /);
      const { key } = await service.organization();
      expect((await admin(key)).body.error.message).toBe(
        'This is an API key. Use the admin token or an access token instead.',
      );
      expect((await admin('wrong')).body.error.message).toBe(
        'This is not the admin token or an access token, or was not copied exactly.',
      );
    });

    it('and that of callers, name access tokens too', async () => {
      expect((await service.request('GET', '/usage')).body.error.message).toBe(
        'Send an API key or an access token in the header "Authorization: Bearer <API_KEY>".',
      );
      expect((await service.get('/usage', 'wrong')).body.error.message).toBe(
        'This is not an API key or an access token, or was not copied exactly.',
      );
    });

    it('names the admin token alone where access tokens are not accepted', async () => {
      const other = await startService({ environment: { ADMIN_TOKEN } });
      try {
        const refused = await other.get('/admin/organizations', await ada());
        expect(refused.body.error.message).toBe('This is an access token. Use the admin token instead.');
      } finally {
        await other.close();
      }
    });
  });

  describe('/admin without ADMIN_TOKEN', () => {
    it('is open to tokens with the claim only', async () => {
      const oidc = { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, OIDC_ADMIN_CLAIM };
      const other = await startService({ environment: oidc });
      try {
        expect((await other.get('/admin/organizations', await ada())).status).toBe(200);
        for (const [sent, message] of [
          ['undefined', 'This is not an access token, or was not copied exactly.'],
          [ADMIN_TOKEN, 'This is not an access token, or was not copied exactly.'],
          ['', 'Send an access token in the header "Authorization: Bearer <TOKEN>".'],
        ] as const)
          expect((await other.get('/admin/organizations', sent)).body.error).toMatchObject({
            ...{ code: 'unauthorized', message },
          });
      } finally {
        await other.close();
      }
    });
  });
});

describe('sign-in', () => {
  const REDIRECT_URL = 'http://127.0.0.1:1/callback';
  let provider: TestIdentityProvider;
  let service: TestService;
  let organizationId: string;

  beforeAll(async () => {
    provider = await TestIdentityProvider.start([], { anyClient: { org_id: 'acme' } });
    service = await startService({
      environment: { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, TRUST_PROXY: '1' },
    });
    organizationId = (await service.organization()).id;
    await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${organizationId}'`);
  });

  afterAll(async () => {
    await provider.stop();
    await service.close();
  });

  /** What an assistant remembers while its user signs in. */
  class Assistant implements OAuthClientProvider {
    readonly redirectUrl = REDIRECT_URL;
    readonly clientMetadata = {
      client_name: 'Assistant',
      redirect_uris: [REDIRECT_URL],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      response_types: ['code'],
    };
    authorizationUrl: URL | undefined;
    private client: StoredOAuthClientInformation | undefined;
    private stored: StoredOAuthTokens | undefined;
    private verifier = '';
    private discovered: OAuthDiscoveryState | undefined;

    clientInformation = () => this.client;
    saveClientInformation = (client: StoredOAuthClientInformation) => void (this.client = client);
    tokens = () => this.stored;
    saveTokens = (tokens: StoredOAuthTokens) => void (this.stored = tokens);
    redirectToAuthorization = (url: URL) => void (this.authorizationUrl = url);
    saveCodeVerifier = (verifier: string) => void (this.verifier = verifier);
    codeVerifier = () => this.verifier;
    saveDiscoveryState = (state: OAuthDiscoveryState) => void (this.discovered = state);
    discoveryState = () => this.discovered;
  }

  /** Follows the redirects of a sign-in with its cookies, as a browser does, up to the one that leads back. */
  async function browse(start: URL): Promise<URLSearchParams> {
    const cookies = new Map<string, string>();
    for (let url = start; ;) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) throw new Error(`The sign-in ends with ${response.status}: ${await response.text()}`);
      url = new URL(location, url);
      if (url.href.startsWith(REDIRECT_URL)) return url.searchParams;
    }
  }

  describe('an assistant', () => {
    it('signs in with nothing but the URL of /mcp, and calls a tool for the organization of its user', async () => {
      const assistant = new Assistant();
      const transport = () =>
        new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { authProvider: assistant });
      const first = transport();
      await expect(new Client({ name: 'test', version: '1' }).connect(first)).rejects.toThrow(UnauthorizedError);
      if (!assistant.authorizationUrl) throw new Error('The client was not sent to sign in.');
      const asked = assistant.authorizationUrl.searchParams;
      expect([asked.get('resource'), asked.get('code_challenge_method')]).toEqual([`${service.url}/mcp`, 'S256']);
      await first.finishAuth(await browse(assistant.authorizationUrl));

      const client = new Client({ name: 'test', version: '1' });
      await client.connect(transport());
      const { structuredContent } = await client.callTool({ name: 'get_usage', arguments: {} });
      expect(structuredContent).toMatchObject({ organization: organizationId });
      await client.close();
      const [row] = await service.query("SELECT client FROM api_keys WHERE kind = 'oidc'");
      expect(row).toEqual({ client: assistant.clientInformation()?.client_id });
    });
  });

  describe('the metadata of the service as an OAuth resource', () => {
    it.each([
      ['', ''],
      ['/mcp', '/mcp'],
    ])('%s names the issuer, the service and the scopes', async (path, resource) => {
      const { status, body } = await service.request('GET', `/.well-known/oauth-protected-resource${path}`);
      expect([status, body]).toEqual([
        200,
        {
          resource: `${service.url}${resource}`,
          authorization_servers: [provider.issuer],
          scopes_supported: ['openid'],
          bearer_methods_supported: ['header'],
        },
      ]);
    });

    it('is where a call to /mcp is sent, at the address that the proxy was called by', async () => {
      const headers = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'transcripts.example.com' };
      const refused = await service.request('POST', '/mcp', { ...headers, 'Content-Type': 'application/json' }, '{}');
      const url = 'https://transcripts.example.com/.well-known/oauth-protected-resource/mcp';
      expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, `Bearer resource_metadata="${url}"`]);
      const { body } = await service.request('GET', '/.well-known/oauth-protected-resource/mcp', headers);
      expect(body.resource).toBe('https://transcripts.example.com/mcp');
    });

    it.each(['a"b', 'a b', 'x, error="y'])('has no address for the host %j', async (host) => {
      const { headers } = await service.request('GET', '/usage', { 'X-Forwarded-Host': host });
      expect(headers['www-authenticate']).toMatch(/^Bearer(?: resource_metadata="https?:\/\/[^"\s]+")?$/);
    });

    it.each<[string, string[]]>([
      ['with a space', ['Host: a b']],
      ['with a path', ['Host: a/b']],
      ['that is empty', ['Host:']],
      ['that the proxy has not passed on', []],
    ])('has no address for a host %s, and never a part of one', async (_name, headers) => {
      const respond = async (path: string): Promise<string> => {
        const version = headers.length > 0 ? '1.1' : '1.0';
        const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
        socket.write([`GET ${path} HTTP/${version}`, ...headers, 'Connection: close', '', ''].join('\r\n'));
        return text(socket);
      };
      expect(await respond('/usage')).toMatch(/^WWW-Authenticate: Bearer\r$/m);
      for (const path of ['', '/mcp']) {
        const response = await respond(`/.well-known/oauth-protected-resource${path}`);
        expect(response).toContain(`"authorization_servers":["${provider.issuer}"]`);
        expect(response).not.toContain('"resource"');
      }
    });

    it('is absent without a provider', async () => {
      const plain = await startService();
      try {
        const metadata = await plain.request('GET', '/.well-known/oauth-protected-resource');
        const refused = await plain.request('GET', '/usage', { Authorization: 'Bearer eyJhbGciOiJSUzI1NiJ9.e30.AAAA' });
        expect([metadata.status, refused.headers['www-authenticate']]).toEqual([404, 'Bearer']);
        expect(refused.body.error.code).toBe('invalid_api_key');
      } finally {
        await plain.close();
      }
    });

    it('names OIDC_AUDIENCE when that is a URL, whose scheme counts for the same host', async () => {
      const audience = 'https://127.0.0.1/mcp';
      const other = await startService({ environment: { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: audience } });
      try {
        const { body } = await other.request('GET', '/.well-known/oauth-protected-resource/mcp');
        const { headers } = await other.request('POST', '/mcp');
        expect(body.resource).toBe(audience);
        const challenge = headers['www-authenticate'];
        expect(challenge).toContain('"https://127.0.0.1/.well-known/oauth-protected-resource/mcp"');
        // The metadata without a path is that of another resource.
        expect((await other.request('GET', '/usage')).headers['www-authenticate']).toBe(challenge);
      } finally {
        await other.close();
      }
    });

    it('names the service when OIDC_AUDIENCE is a URI of another scheme, also with the host and path of the service', async () => {
      const environment = { OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: 'api://127.0.0.1/mcp' };
      const other = await startService({ environment });
      try {
        const { headers } = await other.request('GET', '/usage');
        const url = `${other.url}/.well-known/oauth-protected-resource`;
        expect(headers['www-authenticate']).toBe(`Bearer resource_metadata="${url}"`);
        const { body } = await other.request('GET', '/.well-known/oauth-protected-resource');
        expect(body.resource).toBe(other.url);
      } finally {
        await other.close();
      }
    });
  });
});
