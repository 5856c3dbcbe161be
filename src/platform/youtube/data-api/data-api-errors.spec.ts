import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readDataApiError } from './data-api-errors.js';

const older = (reason: string, message = 'x') => ({ error: { code: 403, message, errors: [{ reason, domain: 'y' }] } });
const newer = (reason: string, metadata: object = {}) => ({
  error: { code: 400, message: 'x', errors: [{ reason: 'badRequest' }], details: [{ reason, metadata }] },
});

describe('an error of the Data API', () => {
  it.each([
    [403, older('quotaExceeded'), 'quota'],
    [403, older('dailyLimitExceeded'), 'quota'],
    [429, newer('RATE_LIMIT_EXCEEDED', { quota_limit: 'defaultPerDayPerProject' }), 'quota'],
    [429, newer('RATE_LIMIT_EXCEEDED', { quota_limit: 'defaultPerMinutePerUser' }), 'rate'],
    [403, older('userRateLimitExceeded'), 'rate'],
    [429, undefined, 'rate'],
    [400, newer('API_KEY_INVALID'), 'refused'],
    [400, older('badRequest', 'API key not valid. Please pass a valid API key.'), 'refused'],
    [403, newer('API_KEY_IP_ADDRESS_BLOCKED'), 'refused'],
    [403, older('accessNotConfigured'), 'refused'],
    [401, {}, 'refused'],
    [404, older('playlistNotFound'), 'not-found'],
    // A gateway that does not serve the API, which is no statement about a playlist.
    [404, undefined, 'failed'],
    [404, {}, 'failed'],
    [503, older('backendError'), 'failed'],
    [502, undefined, 'failed'],
    [400, older('invalidPageToken'), 'declined'],
    [403, older('playlistItemsNotAccessible'), 'declined'],
  ] as const)('%s %j is %s', (status, body, kind) => {
    expect(readDataApiError(status, body).kind).toBe(kind);
  });

  it('is read from any JSON, and its reason never repeats a text of the response', () => {
    const reason = fc.oneof(fc.string(), fc.constantFrom('quotaExceeded', 'a b', 'AIzaSyD-0123456789'));
    const error = fc.record({ message: fc.string(), errors: fc.array(fc.record({ reason })), details: fc.jsonValue() });
    fc.assert(
      fc.property(
        fc.integer({ min: 300, max: 599 }),
        fc.oneof(fc.jsonValue(), fc.record({ error })),
        (status, body) => {
          expect(readDataApiError(status, body).reason).toMatch(/^(?:[A-Za-z_]{1,60}|http-\d{3})$/);
        },
      ),
    );
  });
});
