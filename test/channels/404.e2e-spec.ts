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

describe('a channel that cannot be resolved', () => {
  it.each([
    'UC',
    '@',
    'x!',
    '%00',
    'https%3A%2F%2Fexample.com%2F@tidewater',
    'https://example.com/@tidewater',
    'http%3A%2F%2F169.254.169.254%2Flatest%2Fmeta-data',
    'file:///etc/passwd',
    'https%3A%2F%2Fwww.youtube.com%2Fwatch%3Fv%3Dhl-dinghy__',
    'https://www.youtube.com/shorts/hl-bowline_',
    '..%2F..%2Fadmin',
    encodeURIComponent(`https://www.youtube.com/@tidewater?x=${'y'.repeat(2100)}`),
  ])('%s is 404 without an outgoing request', async (reference) => {
    const response = await service.get(`/channels/${reference}/transcripts`, key);
    expect([response.status, response.body?.error.code]).toEqual([404, 'channel_not_found']);
    expect(response.body.error).toMatchObject({ retryable: false, requestId: response.headers['x-request-id'] });
    expect(service.fakeYoutube.requests.total).toBe(0);
  });

  it.each([
    '@no-such-channel',
    'https%3A%2F%2Fwww.youtube.com%2Fc%2Fnobody',
    'UC0000000000000000000000',
    '@sunkentrawler',
  ])('%s, which is deleted or unknown on the platform, is 404', async (reference) => {
    const answer = await service.get(`/channels/${reference}/transcripts`, key);
    expect([answer.status, answer.body?.error.code]).toEqual([404, 'channel_not_found']);
  });

  it('with an invalid parameter is 400: parameters are checked first', async () => {
    expect((await service.get('/channels/x!/transcripts?limit=0', key)).status).toBe(400);
  });
});

describe('an unknown path', () => {
  it.each(['/', '/channels', '/channels/@tidewater', '/channels/@tidewater/transcript', '/admin'])(
    '%s is 404 in the envelope',
    async (path) => {
      const answer = await service.request('GET', path);
      expect([answer.status, answer.body?.error.code]).toEqual([404, 'not_found']);
      expect(answer.body.error.requestId).toBe(answer.headers['x-request-id']);
      expect(answer.headers['cache-control']).toBe('private, no-store');
    },
  );
});
