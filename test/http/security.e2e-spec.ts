import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import type { Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type ServiceResponse, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-7c2e';
const ALLOWED = 'https://app.example.com';
const CORS_ORIGINS = [ALLOWED, 'http://localhost:5173'];
const REFUSED_BY_NODE = '"event":"request_refused"';

let service: TestService;

beforeAll(async () => {
  service = await startService({ environment: { ADMIN_TOKEN, CORS_ORIGINS } });
});
afterAll(() => service.close());

/** Sends bytes on a connection of its own, and waits until the service has ended it. */
async function exchange(raw: string, on = service): Promise<string> {
  let [received, ended] = ['', false];
  const socket = connect(Number(new URL(on.url).port), '127.0.0.1', () => socket.write(raw));
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('error', () => undefined);
  socket.on('close', () => (ended = true));
  await until(() => ended);
  return received;
}

describe('a response', () => {
  it.each(['/usage', '/nothing-here', '/health/live', '/docs-json', '/docs', '/docs/errors'])(
    '(%s) forbids framing, names no framework and sends no HSTS header',
    async (path) => {
      const { headers } = await service.request('GET', path);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
      const policy = String(headers['content-security-policy']);
      expect(policy).toMatch(/default-src 'none';.*frame-ancestors 'none'/);
      expect(policy).not.toMatch(/unsafe-inline|unsafe-eval|\*/);
      expect(headers['x-powered-by']).toBeUndefined();
      expect(headers['strict-transport-security']).toBeUndefined();
    },
  );
});

describe('the page of the documentation', () => {
  it('has only scripts and styles that its policy allows, and stores no key', async () => {
    const { headers, text } = await service.request('GET', '/docs');
    const scripts = [...text.matchAll(/<script([^>]*)>([^<]*)</g)];
    expect(scripts.length).toBeGreaterThan(2);
    for (const [, attributes, content] of scripts)
      expect([attributes, content?.trim()]).toEqual([expect.stringMatching(/ src="\.\/docs\/[a-z-]+\.js"/), '']);
    const styles = [...text.matchAll(/<style>(.*?)<\/style>/gs), ...text.matchAll(/ style="(.*?)"/g)];
    expect(styles.length).toBeGreaterThan(1);
    for (const [, style = ''] of styles) {
      const hash = createHash('sha256').update(style).digest('base64');
      expect(headers['content-security-policy']).toContain(`'sha256-${hash}'`);
    }
    expect(text).not.toMatch(/\son[a-z]+=/);
    const { text: settings } = await service.request('GET', '/docs/swagger-ui-init.js');
    expect(settings).toContain('"persistAuthorization": false');
  });
});

describe('a page on another origin', () => {
  const preflight = (origin: string, path: string, method = 'GET'): Promise<ServiceResponse> =>
    service.request('OPTIONS', path, {
      Origin: origin,
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': 'authorization',
    });

  it.each([ALLOWED, 'http://localhost:5173'])('%s may call the API, without a key in the preflight', async (origin) => {
    const { status, headers } = await preflight(origin, '/channels/@tidewater/transcripts');
    expect([status, headers]).toMatchObject([
      204,
      {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET,POST,DELETE,PATCH',
        'access-control-allow-headers': 'authorization',
        'access-control-max-age': '600',
      },
    ]);
    expect(headers.vary).toContain('Origin');
    expect(headers['access-control-allow-credentials']).toBeUndefined();
  });

  it.each(['http://app.example.com', `${ALLOWED}.evil.com`, 'null'])(
    '%s may neither call the API nor read an error',
    async (origin) => {
      for (const response of [
        await preflight(origin, '/usage'),
        await service.request('GET', '/usage', { Origin: origin }),
      ]) {
        expect(response.headers['access-control-allow-origin']).toBeUndefined();
      }
    },
  );

  it('may read errors when allowed, and may use no methods other than GET, POST, DELETE and PATCH', async () => {
    const answer = await service.request('GET', '/usage', { Origin: ALLOWED });
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([401, ALLOWED]);
    const { headers } = await preflight(ALLOWED, '/usage', 'PUT');
    expect(headers['access-control-allow-methods']).toBe('GET,POST,DELETE,PATCH');
  });

  it.each([[CORS_ORIGINS], [['*']]])(
    'may not use the operator endpoints, for any CORS_ORIGINS (%j)',
    async (origins) => {
      const open =
        origins === CORS_ORIGINS
          ? service
          : await startService({ environment: { ADMIN_TOKEN, CORS_ORIGINS: origins } });
      const asPage = { Origin: ALLOWED, 'Access-Control-Request-Method': 'GET' };
      try {
        const other = await open.request('GET', '/usage', asPage);
        expect(other.headers['access-control-allow-origin']).toBe(origins[0]);
        for (const path of ['/admin', '/admin/organizations', '/admin/keys/key_x', '/metrics']) {
          for (const method of ['GET', 'OPTIONS']) {
            const { status, headers } = await open.request(method, path, {
              ...asPage,
              Authorization: `Bearer ${ADMIN_TOKEN}`,
            });
            expect([path, Object.keys(headers).filter((name) => name.startsWith('access-control'))]).toEqual([
              path,
              [],
            ]);
            if (method === 'OPTIONS') expect([404, 405]).toContain(status);
          }
        }
      } finally {
        if (open !== service) await open.close();
      }
    },
  );

  it('is refused by default', async () => {
    const closed = await startService();
    const { headers } = await closed.request('GET', '/health/live', { Origin: ALLOWED });
    await closed.close();
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('a second Authorization header', () => {
  it.each(['/usage', '/admin/organizations', '/nothing'])(
    'is 400 on %s, for any combination of headers',
    async (path) => {
      const { key } = await service.organization();
      for (const tokens of [
        [key, key],
        [ADMIN_TOKEN, 'x'],
        ['x', key],
        ['', ''],
      ]) {
        const Authorization = tokens.map((token) => `Bearer ${token}`);
        const answer = await service.request('GET', path, { Authorization });
        expect([answer.status, answer.body?.error]).toMatchObject([
          400,
          { code: 'invalid_request', details: [{ field: 'Authorization' }] },
        ]);
      }
    },
  );
});

describe('a client that sends too slowly', () => {
  const body = `POST /admin/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\nContent-Type: application/json\r\n`;
  const requests = [
    ['nothing', ''],
    ['half of a request line', 'GET /usa'],
    ['headers without an end', 'GET /usage HTTP/1.1\r\nHost: a\r\nX-One: 1\r\n'],
    ['half of a body', `${body}Content-Length: 500\r\n\r\n{"name":`],
    ['a body in chunks without an end', `${body}Transfer-Encoding: chunked\r\n\r\n2\r\n{"\r\n`],
  ] as const;
  let server: Server;
  let usual: [number, number];
  /** What each of the requests receives; they wait for their timeouts together. */
  let exchanges: Promise<string>[];
  beforeAll(() => {
    server = service.app.getHttpServer();
    usual = [server.headersTimeout, server.requestTimeout];
    [server.headersTimeout, server.requestTimeout] = [300, 600];
    exchanges = requests.map(([, raw]) => exchange(raw));
  });
  afterAll(() => void ([server.headersTimeout, server.requestTimeout] = usual));

  it.each(requests.map(([what], index) => [what, index] as const))(
    '(%s) gets 408 in the error envelope, is closed, and is logged in one line',
    async (_what, index) => {
      const received = (await exchanges[index]) ?? '';
      expect(received).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n.*"code":"invalid_request"/s);
      const { requestId } = (JSON.parse(received.slice(received.indexOf('{'))) as { error: { requestId: string } })
        .error;
      const lines = service.logs.filter((line) => line.includes(REFUSED_BY_NODE) && line.includes(requestId));
      expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
        { level: 'info', status: 408, address: '127.0.0.1', requestId },
      ]);
    },
  );

  it('has at most 15 seconds for the headers and 30 seconds for the whole request', () => {
    expect(usual).toEqual([15_000, 30_000]);
  });
});

describe('a HEAD request that is not well-formed', () => {
  it.each(['/channels/@\u6d77/transcripts HTTP/1.1\r\nHost: a', '/usage HTTP/1.1\r\nHost a'])(
    '(%j) gets the head of the refusal without its body, which a client would take for the next response',
    async (rest) => {
      const received = await exchange(`HEAD ${rest}\r\n\r\n`);
      expect(received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*\r\nContent-Length: [1-9][0-9]*\r\n.*\r\n\r\n$/s);
    },
  );
});

describe('a request with an unknown expectation', () => {
  it('is served', async () => {
    const head = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: miracles';
    expect(await exchange(`${head}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('the client address from a proxy', () => {
  const addressIn = async (on: TestService, forwarded: string): Promise<unknown> => {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'X-Forwarded-For': forwarded };
    expect((await on.request('POST', '/admin/usage/prune', headers)).status).toBe(200);
    const lines = () => on.logs.filter((line) => line.includes('"admin":true'));
    await until(() => lines().length > 0);
    return (JSON.parse(lines()[0] ?? '{}') as { address: unknown }).address;
  };

  it.each([
    ['off', '203.0.113.9', '127.0.0.1'],
    ['loopback', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['1', '198.51.100.1:1024, 203.0.113.9:51234', '203.0.113.9'],
    ['loopback, 192.0.2.0/24', '198.51.100.1:1024, [2001:db8::9]:51234, 192.0.2.8:443', '2001:db8::9'],
  ])('is accepted only from the proxies that TRUST_PROXY=%s names', async (TRUST_PROXY, forwarded, address) => {
    const behind = await startService({ environment: { ADMIN_TOKEN, TRUST_PROXY } });
    try {
      expect(await addressIn(behind, forwarded)).toBe(address);
    } finally {
      await behind.close();
    }
  });
});
