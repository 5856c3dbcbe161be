import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { recordedQuery, TrafficRedactor } from './traffic-recording.js';

const redactor = (...secrets: string[]) => new TrafficRedactor(new Set(secrets));
const TOKEN = 'CgtBZWY3LWZvNi1oMCi53OPLBjIKCgJDSBIEGgAgSQ%3D%3D_-abcdefghijklmnopqrstuvwxyz0123456789';

describe('recorded text', () => {
  it.each([
    ['an IPv4 address at the end of a sentence', 'It is 203.0.113.77.', 'It is 0.0.0.0.'],
    ['an IPv4 address', 'from 203.0.113.77, a proxy', 'from 0.0.0.0, a proxy'],
    ['an IPv6 address', 'ip=2001:db8:85a3::8a2e:370:7334&x', 'ip=::&x'],
    ['an IPv6 address in full', '2001:db8:0:0:0:0:0:1', '::'],
    ['a long token', `a ${TOKEN} b`, 'a removed b'],
    ['a known secret', 'Hello hunter2x!', 'Hello removed!'],
    [
      'what a caption URL does not need',
      'https://www.youtube.com/api/timedtext?v=aaaaaaaaaaa&ip=203.0.113.7&signature=0AB1&key=yt8&pot=x&lang=en&exp=xpe',
      'https://www.youtube.com/api/timedtext?v=aaaaaaaaaaa&lang=en&exp=xpe',
    ],
  ])('has no %s', (_, text, redacted) => {
    expect(redactor('hunter2x').text(text)).toBe(redacted);
  });

  it.each([
    '1:02:03',
    '2.20260805.01.00',
    '18.3.2.22D82',
    'UCTwECeGqMZee77BjdoYtI2Q',
    '12:05 to 13:10',
    'a :: b',
    'v1.2.3',
  ])('keeps %s', (text) => {
    expect(redactor().text(text)).toBe(text);
  });

  it('of a page has no values of inputs, but its markers', () => {
    const page = `<!DOCTYPE html><div class="g-recaptcha" data-s="${TOKEN}"></div><input name='q' value='EgS'>IP 203.0.113.7`;
    const redacted = redactor().text(page);
    expect(redacted).toContain('class="g-recaptcha"');
    for (const secret of [TOKEN, 'EgS', '203.0.113.7']) expect(redacted).not.toContain(secret);
  });
});

describe('recorded JSON', () => {
  it('has no visitor data, stream URLs, tracking, or context of the client', () => {
    const response = {
      responseContext: { visitorData: 'Cgs', serviceTrackingParams: [{ key: 'ip' }], maxAgeSeconds: 0 },
      streamingData: { formats: [{ url: 'https://rr1.googlevideo.com/?ip=1.2.3.4' }] },
      trackingParams: 'x',
      videoDetails: { videoId: 'aaaaaaaaaaa' },
    };
    expect(redactor().json(response)).toEqual({
      responseContext: { visitorData: 'removed', maxAgeSeconds: 0 },
      videoDetails: { videoId: 'aaaaaaaaaaa' },
    });
    const request = { videoId: 'aaaaaaaaaaa', context: { client: {} }, serviceIntegrityDimensions: { poToken: 'x' } };
    expect(redactor().json(request)).toEqual({ videoId: 'aaaaaaaaaaa' });
  });

  it('numbers continuation tokens alike in responses and in the requests for them', () => {
    const one = redactor();
    const page = (token: string) => ({ continuationCommand: { token, request: 'BROWSE' } });
    expect(one.json([page(TOKEN), page('other')])).toEqual([
      { continuationCommand: { request: 'BROWSE', token: 'continuation-1' } },
      { continuationCommand: { request: 'BROWSE', token: 'continuation-2' } },
    ]);
    expect(one.json({ continuation: TOKEN })).toEqual({ continuation: 'continuation-1' });
  });

  it('has no planted secret, wherever it is', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9]{8,20}$/).filter((text) => !'removed'.includes(text));
    const planted = secret.chain((text) => {
      const around = fc.string({ maxLength: 10 }).map((other) => `${other}${text}${other}`);
      return fc.tuple(fc.constant(text), fc.object({ values: [around, fc.constant(text)], maxDepth: 4 }));
    });
    fc.assert(
      fc.property(planted, ([text, value]) => {
        const values = JSON.stringify(value, (_key, each: unknown) => each);
        fc.pre(values.includes(text) && !Object.keys(value).some((key) => key.includes(text)));
        expect(JSON.stringify(redactor(text).json(value))).not.toContain(text);
      }),
    );
  });

  it('has no address, wherever it is', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV6(), (four, six) => {
        fc.pre(four !== '0.0.0.0');
        const redacted = JSON.stringify(redactor().json({ a: [`x ${four} y`], b: { c: `[${six}]:443` } }));
        expect(redacted).not.toContain(four);
      }),
    );
  });
});

it('a recorded query names what is read, and no token', () => {
  const query = (url: string) => recordedQuery(new URL(url, 'https://www.youtube.com'));
  expect(query('/api/timedtext?v=aaaaaaaaaaa&ip=1.2.3.4&lang=en&pot=x&signature=y')).toBe('?v=aaaaaaaaaaa&lang=en');
  expect(query('/feeds/videos.xml?channel_id=UC1')).toBe('?channel_id=UC1');
  expect(query('/watch?token=x')).toBe('');
});
