import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ApiKeysService } from '../../src/organizations/api-keys.service.js';
import { startService, type TestService } from '../service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const PATH = '/channels/@tidewater/transcripts';

describe('a call without a valid key', () => {
  it.each([
    ['no header', {}, 'unauthorized'],
    ['another scheme', { Authorization: 'Basic dTpw' }, 'unauthorized'],
    ['a scheme and a space', { Authorization: 'Bearer ' }, 'unauthorized'],
    ['something else', { Authorization: 'Bearer abc' }, 'invalid_api_key'],
    ['a key cut short', { Authorization: `Bearer ctk_${'a'.repeat(48)}` }, 'invalid_api_key'],
    ['a key of letters beyond ASCII', { Authorization: `Bearer ctk_${'\u00e9'.repeat(49)}` }, 'invalid_api_key'],
  ])('(%s) is refused', async (_what, headers, code) => {
    const response = await service.request('GET', PATH, headers);
    expect(response.status).toBe(401);
    expect(response.headers['www-authenticate']).toBe('Bearer');
    expect(response.body.error).toMatchObject({ code, retryable: false, requestId: response.headers['x-request-id'] });
  });

  it('with a well-formed unknown key is refused, and the key is not echoed', async () => {
    const { key } = await service.organization();
    const other = await startService();
    try {
      const answer = await other.get(PATH, key);
      expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_api_key']);
      expect(answer.text + other.logs.join('')).not.toContain(key);
    } finally {
      await other.close();
    }
  });

  it('with a key that was revoked is refused on the next call', async () => {
    const { key, keyId } = await service.organization();
    expect((await service.get('/usage', key)).status).toBe(200);
    await service.app.get(ApiKeysService).revoke(keyId);
    expect((await service.get('/usage', key)).body.error.code).toBe('invalid_api_key');
    expect((await service.get(PATH, key)).status).toBe(401);
  });

  it('with a key that has expired is refused', async () => {
    const { key, keyId } = await service.organization();
    await service.query(`UPDATE api_keys SET expires_at = quota_now() - interval '1 second' WHERE id = '${keyId}'`);
    expect((await service.get(PATH, key)).body.error.code).toBe('invalid_api_key');
  });

  it('is refused before its plan, its parameters or its channel are checked', async () => {
    const answer = await service.request('GET', '/channels/x!/transcripts?limit=0&cursor=1');
    expect(answer.status).toBe(401);
  });
});
