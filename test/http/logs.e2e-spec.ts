import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe('an API key in the wrong place', () => {
  it('is in no line of the log, no header and no row', async () => {
    const { key } = await service.organization();
    const encodings = [key, `ctk%5F${key.slice(4)}`, `ctk%255f${key.slice(4)}`, `%2563tk%25255F${key.slice(4)}`];
    const paths = encodings.flatMap((text) => [`/channels/${text}/transcripts`, `/${text}`, `/${text.toUpperCase()}`]);
    for (const path of paths) expect((await service.get(path, key)).status).toBe(404);
    for (const text of encodings) expect((await service.get(`/%zz/${text}`, key)).status).toBe(400);
    const response = await service.get('/channels/@tidewater/transcripts?limit=1', key, { 'X-Request-Id': key });
    expect(response.status).toBe(200);
    expect(response.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(await service.query('SELECT request_id FROM quota_reservations')).toEqual([
      { request_id: response.headers['x-request-id'] },
    ]);
    expect(service.logs.join('').toLowerCase()).not.toContain(key.slice(10).toLowerCase());
  });
});

describe('a line of the log', () => {
  it('escapes terminal control characters and text direction marks', async () => {
    const before = service.logs.length;
    await service.request('GET', '/%1B%5B31m%E2%80%AEtxt%E2%80%8B%C2%9B%E2%80%A8%7F%F3%A0%81%81');
    const line = service.logs.slice(before).find((one) => one.includes('"event":"request"')) ?? '';
    expect(line.trimEnd()).toMatch(/^[ -~]+$/);
    expect(line).toContain('/\\u001b[31m\\u202etxt\\u200b\\u009b\\u2028\\u007f\\udb40\\udc41');
    expect((JSON.parse(line) as { path: string }).path).toContain('\u202etxt');
  });
});

describe('the line of a refused call', () => {
  it('has the address of the caller for 401, 403 and 429, and for no other status', async () => {
    const refusing = await startService({ environment: { RATE_LIMIT_PER_MINUTE: 1, TRUST_PROXY: 'loopback' } });
    try {
      const { key } = await refusing.organization({ plan: 'free' });
      const headers = { 'X-Forwarded-For': '203.0.113.9:4711' };
      const statuses = [
        (await refusing.request('GET', '/usage', headers)).status,
        (await refusing.get('/channels/@tidewater/transcripts', key, headers)).status,
        (await refusing.get('/usage', key, headers)).status,
        (await refusing.request('GET', '/nothing', headers)).status,
      ];
      expect(statuses).toEqual([401, 403, 429, 404]);
      const lines = () => refusing.logs.filter((line) => line.includes('"event":"request"'));
      await until(() => lines().length === 4);
      const logged = lines().map((line) => JSON.parse(line) as { status: number; address?: string });
      expect(logged.map(({ status, address }) => [status, address])).toEqual([
        [401, '203.0.113.9'],
        [403, '203.0.113.9'],
        [429, '203.0.113.9'],
        [404, undefined],
      ]);
    } finally {
      await refusing.close();
    }
  });
});

describe('a file of the documentation page that cannot be served as requested', () => {
  it('is refused with the JSON error envelope', async () => {
    const response = await service.request('GET', '/docs/swagger-ui.css', { Range: 'bytes=99999999-' });
    expect(response.status).toBe(400);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.body.error.requestId).toBe(response.headers['x-request-id']);
  });
});
