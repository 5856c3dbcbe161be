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
import { startService, type TestService } from '../harness/service.js';
import { AUDIENCE, TestIdentityProvider } from './identity-provider.js';

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
