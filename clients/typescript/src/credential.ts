import { noResponseError } from './errors.js';

/** Returns a token: a JWT, whose `exp` says when it ends, or any other one with `expiresAt`. */
export type TokenProvider = () => Promise<string | { token: string; expiresAt: Date }>;

/** How the calls of a client authenticate: either of both. */
export interface CredentialOptions {
  /** An API key: `ctk_…`. */
  apiKey?: string;
  /** Returns a token of your identity provider. It is called when there is none, shortly before it ends, and when it was refused. */
  token?: TokenProvider;
}

/** For the way to the service, and clocks that differ. */
const RENEW_BEFORE_MS = 30_000;

/** The API key of a client, or its current token. */
export class Credential {
  private readonly apiKey: string | undefined;
  private readonly provide: TokenProvider | undefined;
  private current: { token: string; endsAtMs: number } | undefined;
  private renewal: Promise<string> | undefined;

  constructor({ apiKey, token }: CredentialOptions) {
    if (apiKey !== undefined && token !== undefined) throw new TypeError('Pass either apiKey or token, not both.');
    if (token !== undefined && typeof token !== 'function')
      throw new TypeError('token must be a function that returns a token, such as () => provider.accessToken().');
    if (token === undefined) {
      if (!apiKey) throw new TypeError('apiKey is empty: pass the key of your organization, or token.');
      checkText('apiKey', apiKey);
    }
    this.apiKey = apiKey;
    this.provide = token;
  }

  /** Returns the API key, or a token that does not end soon. Calls at the same time share one renewal. */
  async value(): Promise<string> {
    if (this.apiKey !== undefined) return this.apiKey;
    if (this.current && Date.now() < this.current.endsAtMs - RENEW_BEFORE_MS) return this.current.token;
    this.renewal ??= this.renew().finally(() => (this.renewal = undefined));
    return this.renewal;
  }

  /** Removes a token that the service refused. @returns whether there can be another one */
  discard(refused: string): boolean {
    if (this.current?.token === refused) this.current = undefined;
    return this.provide !== undefined;
  }

  private async renew(): Promise<string> {
    try {
      const given = (await this.provide?.()) ?? '';
      const { token, expiresAt } = typeof given === 'string' ? { token: given } : given;
      checkText('the token', token);
      this.current = { token, endsAtMs: expiresAt?.getTime() ?? endOf(token) };
      return token;
    } catch (error) {
      if (this.current && Date.now() < this.current.endsAtMs) return this.current.token;
      throw noResponseError(`token() failed: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  }
}

/** Headers would report the value itself. The line feed at the end of a file is the usual cause. */
function checkText(name: string, text: string): void {
  if (!text) throw new TypeError(`${name} is empty.`);
  if (!/^[\x21-\x7e]+$/.test(text)) throw new TypeError(`${name} contains a space, a line break or no ASCII: trim it.`);
}

/** When a JWT ends, in milliseconds; of any other token nobody knows. */
function endOf(token: string): number {
  try {
    const [, payload = ''] = token.split('.');
    const claims: unknown = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    const end: unknown = typeof claims === 'object' && claims !== null ? Reflect.get(claims, 'exp') : undefined;
    return typeof end === 'number' ? end * 1000 : Infinity;
  } catch {
    return Infinity;
  }
}
