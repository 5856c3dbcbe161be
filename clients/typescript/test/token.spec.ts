import { describe, expect, it } from '@jest/globals';
import { ChannelTranscriptsClient, type TokenProvider } from '../src/index.js';
import { json, refusal, scripted } from './scripted-fetch.js';

const USAGE = json({ used: 0 });
const REFUSED = refusal(401, 'invalid_token', false);
const inSeconds = (seconds: number): Date => new Date(Date.now() + seconds * 1000);

/** A JWT that ends in some seconds, whose claims have letters that differ between base64 and base64url. */
function jwt(seconds: number, name: string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1000) + seconds;
  return `${part({ alg: 'RS256' })}.${part({ exp, name, more: '??>>ÿÿ~~' })}.${part({ name })}`;
}

function clientOf(token: TokenProvider, ...steps: Parameters<typeof scripted>) {
  const { options, wait, sent } = scripted(...steps);
  const { baseUrl, fetch } = options;
  const authorizations = (): (string | null)[] => sent.map(({ headers }) => headers.get('Authorization'));
  return { client: new ChannelTranscriptsClient({ baseUrl, fetch, token }, wait), authorizations };
}

/** A provider that counts its calls. */
function provider(issue: (count: number) => Awaited<ReturnType<TokenProvider>>) {
  const calls = { count: 0 };
  const token = (): ReturnType<TokenProvider> => Promise.resolve(issue((calls.count += 1)));
  return { token, calls };
}

describe('a token', () => {
  it.each<[string, number, (seconds: number, count: number) => Awaited<ReturnType<TokenProvider>>]>([
    ['by the `exp` of a JWT', 3600, (seconds, count) => jwt(seconds, `token-${count}`)],
    ['by `expiresAt`', 3600, (seconds, count) => ({ token: `token-${count}`, expiresAt: inSeconds(seconds) })],
  ])('is used until shortly before it ends (%s)', async (_, seconds, issue) => {
    const lasting = provider((count) => issue(seconds, count));
    const { client } = clientOf(lasting.token, USAGE);
    for (let call = 0; call < 3; call += 1) await client.usage();
    expect(lasting.calls.count).toBe(1);
    const ending = provider((count) => issue(count === 1 ? 20 : seconds, count));
    const { client: second, authorizations } = clientOf(ending.token, USAGE);
    for (let call = 0; call < 3; call += 1) await second.usage();
    expect(ending.calls.count).toBe(2);
    const [first, ...others] = authorizations();
    expect(others).toEqual([others[0], others[0]]);
    expect(first).not.toBe(others[0]);
  });

  it('that does not say when it ends is used until it is refused', async () => {
    const { token, calls } = provider((count) => `opaque-${count}`);
    const { client, authorizations } = clientOf(token, USAGE, USAGE, REFUSED, USAGE);
    for (let call = 0; call < 4; call += 1) await client.usage();
    expect([calls.count, authorizations()]).toEqual([
      2,
      ['opaque-1', 'opaque-1', 'opaque-1', 'opaque-2', 'opaque-2'].map((text) => `Bearer ${text}`),
    ]);
  });

  it('is requested once for calls at the same time, also when all of them were refused', async () => {
    const { token, calls } = provider((count) => `token-${count}`);
    const refuseFirst = ({ headers }: { headers: Headers }): Response =>
      headers.get('Authorization') === 'Bearer token-1' ? REFUSED.clone() : USAGE.clone();
    const { client, authorizations } = clientOf(token, refuseFirst);
    await Promise.all(Array.from({ length: 10 }, () => client.usage()));
    expect([calls.count, authorizations().length]).toEqual([2, 20]);
  });

  it('is renewed once for a call; an API key is not', async () => {
    const { token, calls } = provider((count) => `token-${count}`);
    const { client, authorizations } = clientOf(token, REFUSED);
    await expect(client.jobs.create('@tidewater')).rejects.toMatchObject({ status: 401, code: 'invalid_token' });
    expect([calls.count, authorizations()]).toEqual([2, ['Bearer token-1', 'Bearer token-2']]);
    const { options, wait, sent } = scripted(refusal(401, 'invalid_api_key', false));
    await expect(new ChannelTranscriptsClient(options, wait).usage()).rejects.toMatchObject({ status: 401 });
    expect(sent).toHaveLength(1);
  });

  it('that still counts is used when there is no new one, and a failed request of one is repeated by the next call', async () => {
    let isDown = false;
    const token: TokenProvider = () =>
      isDown
        ? Promise.reject(new TypeError('fetch failed'))
        : Promise.resolve({ token: 'token-1', expiresAt: inSeconds(20) });
    const { client, authorizations } = clientOf(token, USAGE);
    await client.usage();
    isDown = true;
    await client.usage();
    expect(authorizations()).toEqual(['Bearer token-1', 'Bearer token-1']);
    const other = clientOf(token, USAGE);
    await expect(other.client.usage()).rejects.toMatchObject({
      ...{ code: 'no_response', message: 'token() failed: fetch failed', cause: { message: 'fetch failed' } },
    });
    expect(other.authorizations()).toEqual([]);
    isDown = false;
    await other.client.usage();
  });

  it('is not waited for by a call that is cancelled', async () => {
    const leaving = new AbortController();
    const { client, authorizations } = clientOf(() => new Promise(() => undefined), USAGE);
    const call = client.usage({ signal: leaving.signal });
    leaving.abort();
    await expect(call).rejects.toThrow(/abort/i);
    await expect(client.usage({ signal: AbortSignal.abort() })).rejects.toThrow(/abort/i);
    expect(authorizations()).toEqual([]);
  });

  it('that cannot be a header is refused without being shown', async () => {
    const { client } = clientOf(() => Promise.resolve('hunter2\n'), USAGE);
    const error: unknown = await client.usage().catch((reason: unknown) => reason);
    expect(String(error)).toContain('the token contains a space, a line break');
    expect(String(error)).not.toContain('hunter2');
    await expect(clientOf(() => Promise.resolve(''), USAGE).client.usage()).rejects.toThrow('the token is empty');
  });

  it('excludes an API key', () => {
    const token: TokenProvider = () => Promise.resolve('token');
    expect(() => new ChannelTranscriptsClient({ baseUrl: 'http://service.test', apiKey: 'ctk_x', token })).toThrow(
      'Pass either apiKey or token',
    );
    expect(() => new ChannelTranscriptsClient({ baseUrl: 'http://service.test' })).toThrow('apiKey is empty');
  });
});
