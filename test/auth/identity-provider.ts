import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose';

export const AUDIENCE = 'channel-transcripts';

/** A client with a secret, whose tokens have these claims. */
export interface TestClient {
  id: string;
  claims: JWTPayload;
}

/** A private key with its `kid`. One for RS256 takes a hundred times as long as one for ES256. */
export async function newKey(kid: string, alg = 'ES256'): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg, use: 'sig' };
}

/** The key of each provider, since it takes long to generate. */
let firstKey: Promise<JWK> | undefined;

/** oidc-provider in a process of its own. */
export class TestIdentityProvider {
  private child: ChildProcess | undefined;
  private port: number | undefined;

  private constructor(
    readonly keys: JWK[],
    private readonly settings: object,
  ) {}

  static async start(
    clients: readonly TestClient[],
    { anyClient = {}, audience = AUDIENCE }: { anyClient?: JWTPayload; audience?: string } = {},
  ): Promise<TestIdentityProvider> {
    const claims = Object.fromEntries(clients.map((client) => [client.id, client.claims]));
    const provider = new TestIdentityProvider([await (firstKey ??= newKey('first', 'RS256'))], {
      audience,
      claims: { '*': anyClient, ...claims },
      clients: clients.map(({ id }) => ({
        client_id: id,
        client_secret: SECRET,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      })),
    });
    await provider.restart();
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts the process again at the same address. */
  async restart(): Promise<void> {
    this.child = fork(join(import.meta.dirname, 'programs/identity-provider.mjs'), {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const { issuer } = await this.ask({ settings: { ...this.settings, port: this.port, keys: this.keys } });
    this.port = Number(new URL(String(issuer)).port);
  }

  async stop(): Promise<void> {
    if (!this.child || this.child.exitCode !== null) return;
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
    this.child = undefined;
  }

  /** Signs with new keys, the first one from now on. */
  async useKeys(...keys: JWK[]): Promise<void> {
    this.keys.splice(0, Infinity, ...keys);
    await this.ask({ settings: { keys } });
  }

  /** The requests by path since the last call. */
  async requests(): Promise<Record<string, number>> {
    return (await this.ask({ kind: 'requests' })) as Record<string, number>;
  }

  /** An access token by client credentials. */
  async token(client: string, resource = 'https://transcripts.example.com'): Promise<string> {
    const response = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${Buffer.from(`${client}:${SECRET}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource }),
    });
    const { access_token: token } = (await response.json()) as { access_token?: string };
    if (token === undefined) throw new Error(`No token: ${response.status}`);
    return token;
  }

  /** A token with the provider's own key and any claims. */
  async sign(
    claims: JWTPayload,
    { key = this.keys[0], ...header }: { key?: JWK | undefined; kid?: string; typ?: string } = {},
  ) {
    if (!key) throw new Error('There is no key.');
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.issuer, aud: AUDIENCE, iat: now, exp: now + 600, ...claims };
    const signing = new SignJWT(all).setProtectedHeader({
      alg: key.alg ?? 'RS256',
      ...(key.kid !== undefined && { kid: key.kid }),
      ...header,
    });
    return signing.sign(await importJWK(key));
  }

  private async ask(message: object): Promise<Record<string, unknown>> {
    if (!this.child) throw new Error('The provider is stopped.');
    const answer = once(this.child, 'message');
    this.child.send(message);
    const [received] = (await answer) as [Record<string, unknown>];
    return received;
  }
}

const SECRET = 'a-secret-of-a-client-of-the-tests';
