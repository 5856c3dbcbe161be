import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../../test/any-text.js';
import { readPoToken } from './http-po-token-provider.js';

const VIDEO = 'aaaaaaaaaaa';
const NOW = Date.UTC(2026, 8, 1, 12, 0, 0);
const read = (response: unknown) => readPoToken(JSON.stringify(response), VIDEO, NOW);

describe('readPoToken', () => {
  it.each([
    ['2026-09-01T18:00:00.000Z', 6 * 3_600_000 - 60_000],
    [NOW + 120_000, 60_000],
    ['2027-09-01T12:00:00Z', 12 * 3_600_000],
    ['2026-09-01T12:00:30Z', 0],
    ['2020-01-01T00:00:00Z', 0],
    ['soon', 0],
    [undefined, 0],
  ])('caches a token that expires at %s for %d ms', (expiresAt, validMs) => {
    expect(read({ poToken: 'Mlvx_-=', contentBinding: VIDEO, expiresAt })).toEqual({ token: 'Mlvx_-=', validMs });
  });

  it.each([
    {},
    { error: 'Failed to fetch' },
    { poToken: '' },
    { poToken: 'with space' },
    { poToken: 'x'.repeat(4_097) },
    { poToken: 7 },
    { poToken: 'Mlvx', contentBinding: 'bbbbbbbbbbb' },
    [],
    null,
  ])('finds no token for the video in %j', (response) => {
    expect(read(response)).toBeNull();
  });

  it('reads any body as a token that a URL can contain, or as none', () => {
    const bodies = fc.oneof(
      anyText(),
      fc.json(),
      fc
        .record({ poToken: anyText(), expiresAt: fc.oneof(anyText(), fc.double()) })
        .map((each) => JSON.stringify(each)),
    );
    fc.assert(
      fc.property(bodies, (body) => {
        const issued = readPoToken(body, VIDEO, NOW);
        if (!issued) return;
        expect(issued.token).toMatch(/^[\x21-\x7e]+$/);
        expect(Number.isSafeInteger(issued.validMs) && issued.validMs >= 0).toBe(true);
      }),
    );
  });
});
