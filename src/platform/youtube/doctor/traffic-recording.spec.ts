import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTrafficRedactor } from './traffic-recording.js';

const redacted = (value: unknown): unknown => JSON.parse(createTrafficRedactor()(value));
const TOKEN = 'CgtBZWY3LWZvNi1oMCi53OPLBjIKCgJDSBIEGgAgSQ%3D%3D_-abcdefghijklmnopqrstuvwxyz0123456789';

describe('recorded traffic', () => {
  it.each([
    ['an IPv4 address at the end of a sentence', 'It is 203.0.113.77.', 'It is 0.0.0.0.'],
    ['an IPv4 address', 'from 203.0.113.77, a proxy', 'from 0.0.0.0, a proxy'],
    ['an IPv6 address', 'ip=2001:db8:85a3::8a2e:370:7334&x', 'ip=::&x'],
    ['an IPv6 address in full', '2001:db8:0:0:0:0:0:1', '::'],
    ['a long token', `a ${TOKEN} b`, 'a token-1 b'],
    [
      'values of inputs in a page',
      `<div class="g-recaptcha" data-s="EgS">`,
      '<div class="g-recaptcha" data-s="removed">',
    ],
    [
      'what a caption URL does not need',
      'https://www.youtube.com/api/timedtext?v=aaaaaaaaaaa&ip=203.0.113.7&signature=0AB1&key=yt8&pot=x&lang=en&exp=xpe',
      'https://www.youtube.com/api/timedtext?v=aaaaaaaaaaa&lang=en&exp=xpe',
    ],
  ])('has no %s', (_, text, written) => {
    expect(redacted(text)).toBe(written);
  });

  it.each(['1:02:03', '2.20260805.01.00', '18.3.2.22D82', 'UCTwECeGqMZee77BjdoYtI2Q', '12:05 to 13:10', 'a :: b'])(
    'keeps %s',
    (text) => {
      expect(redacted(text)).toBe(text);
    },
  );

  it('has no visitor data, stream URLs, tracking, or context of the client', () => {
    const response = {
      responseContext: { visitorData: 'Cgs', serviceTrackingParams: [{ key: 'ip' }], maxAgeSeconds: 0 },
      streamingData: { formats: [{ url: 'https://rr1.googlevideo.com/?ip=1.2.3.4' }] },
      trackingParams: 'x',
      videoDetails: { videoId: 'aaaaaaaaaaa' },
    };
    expect(redacted(response)).toEqual({
      responseContext: { visitorData: 'removed', maxAgeSeconds: 0 },
      videoDetails: { videoId: 'aaaaaaaaaaa' },
    });
    const request = { videoId: 'aaaaaaaaaaa', context: { client: {} }, serviceIntegrityDimensions: { poToken: 'x' } };
    expect(redacted(request)).toEqual({ videoId: 'aaaaaaaaaaa' });
  });

  it('numbers long tokens alike in responses and in the requests for them', () => {
    const redact = createTrafficRedactor();
    const page = [{ continuationCommand: { token: TOKEN } }, { continuationCommand: { token: `${TOKEN}x` } }];
    expect(redact(page)).toBe(
      '[{"continuationCommand":{"token":"token-1"}},{"continuationCommand":{"token":"token-2"}}]',
    );
    expect(redact({ continuation: TOKEN })).toBe('{"continuation":"token-1"}');
  });

  it('has no address, wherever it is', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.string(), (address, text) => {
        fc.pre(address !== '0.0.0.0');
        expect(createTrafficRedactor()({ a: [`x ${address} y`], b: { c: `${text} ${address}` } })).not.toContain(
          address,
        );
      }),
    );
  });
});
