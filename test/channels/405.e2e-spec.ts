import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe('a method other than GET', () => {
  it.each(['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])(
    '%s on the operation is 405 with Allow, with and without a key, and costs nothing',
    async (method) => {
      const { key } = await service.organization();
      for (const path of [
        '/channels/@tidewater/transcripts',
        '/channels/https://www.youtube.com/@tidewater/transcripts?limit=x',
      ]) {
        for (const headers of [{}, { Authorization: `Bearer ${key}` }] as Record<string, string>[]) {
          const response = await service.request(method, path, headers);
          expect([method, response.status, response.headers.allow]).toEqual([method, 405, 'GET']);
          if (method !== 'HEAD')
            expect(response.body.error).toMatchObject({ code: 'method_not_allowed', retryable: false });
        }
      }
      expect(service.fakeYoutube.requests.total).toBe(0);
      expect((await service.get('/usage', key)).body.used).toBe(0);
    },
  );

  it('is 405 on the other routes too, which allow HEAD', async () => {
    const answer = await service.request('POST', '/usage');
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
    expect((await service.request('HEAD', '/health/live')).status).toBe(200);
    expect((await service.request('DELETE', '/health/ready')).status).toBe(405);
    for (const path of ['/docs', '/docs-json']) {
      const refused = await service.request('POST', path);
      expect([path, refused.status, refused.headers.allow]).toEqual([path, 405, 'GET, HEAD']);
      expect((await service.request('GET', path)).status).toBe(200);
    }
  });
});
