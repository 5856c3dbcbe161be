import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../service.js';

let service: TestService;
let key: string;

beforeAll(async () => {
  service = await startService();
  ({ key } = await service.organization());
});
afterAll(() => service.close());
beforeEach(() => service.fakeYoutube.reset());

const PATH = '/channels/@tidewater/transcripts';

describe('an invalid parameter', () => {
  it.each([
    'limit=0',
    'limit=-1',
    'limit=1.5',
    'limit=1e1',
    'limit=1%20',
    'limit=000',
    'limit=',
    'limit=1&limit=2',
    'limit[]=1',
    'limit=1%00',
  ])('%s is refused by name, before any request to the platform', async (query) => {
    const response = await service.get(`${PATH}?${query}`, key);
    expect(response.status).toBe(400);
    expect(response.body.error).toMatchObject({ code: 'invalid_request', retryable: false });
    expect(response.body.error.requestId).toBe(response.headers['x-request-id']);
    expect(response.body.error.details[0].field).toBe('limit');
    expect(response.body.error.details[0].message.length).toBeGreaterThan(20);
    expect(service.fakeYoutube.requests.total).toBe(0);
  });

  it.each([
    ['cursor=abc', 'cursor'],
    ['Limit=5', 'Limit'],
    ['__proto__=1', '__proto__'],
    ['languages=', 'languages'],
    ['languages=en;de', 'languages'],
    ['languages=en&languages=de', 'languages'],
    ['languages[]=en', 'languages'],
  ])('%s is refused by name', async (query, field) => {
    const answer = await service.get(`${PATH}?${query}`, key);
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe('invalid_request');
    expect(answer.body.error.details.map((detail: { field: string }) => detail.field)).toContain(field);
    expect(service.fakeYoutube.requests.total).toBe(0);
  });

  it('is reported together with every other invalid parameter', async () => {
    const answer = await service.get(`${PATH}?limit=x&cursor=1`, key);
    expect(answer.body.error.details.map((detail: { field: string }) => detail.field).sort()).toEqual([
      'cursor',
      'limit',
    ]);
  });

  it('in an undecodable path is 400 before any other check, including the key', async () => {
    for (const path of ['/channels/%zz/transcripts', '/channels/%E0%A4/transcripts', '/%', '/usage%ff']) {
      const answer = await service.request('GET', path);
      expect([path, answer.status, answer.body?.error.code]).toEqual([path, 400, 'invalid_request']);
      expect(answer.headers['x-request-id']).toBe(answer.body.error.requestId);
    }
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
    const text = await sendRaw(raw);
    const [head = '', body = ''] = text.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(head).toMatch(/x-request-id: /i);
    expect((JSON.parse(body) as { error: unknown }).error).toMatchObject({ code: 'invalid_request', retryable: false });
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
