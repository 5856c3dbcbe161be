import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe('an API key in the wrong place', () => {
  it('is in no line of the log, no header and no row', async () => {
    const { key } = await service.organization();
    for (const path of [`/channels/${key}/transcripts`, `/channels/ctk%5F${key.slice(4)}/transcripts`, `/${key}`]) {
      expect((await service.get(path, key)).status).toBe(404);
    }
    const answer = await service.get('/channels/@tidewater/transcripts?limit=1', key, { 'X-Request-Id': key });
    expect(answer.status).toBe(200);
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(await service.query('SELECT request_id FROM quota_reservations')).toEqual([
      { request_id: answer.headers['x-request-id'] },
    ]);
    expect(service.logs.join('')).not.toContain(key.slice(10));
  });
});

describe('a file of the document page that cannot be served as asked', () => {
  it('is refused with the envelope, as JSON and without a validator of the file', async () => {
    const answer = await service.request('GET', '/docs/swagger-ui.css', { Range: 'bytes=99999999-' });
    expect(answer.status).toBe(400);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers.etag).toBeUndefined();
    expect(answer.body.error.requestId).toBe(answer.headers['x-request-id']);
  });
});
