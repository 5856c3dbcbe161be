import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyUrl } from '../../test/any-text.js';
import { isPublicAddress } from './public-address.js';
import { InvalidUrlError } from './webhook-errors.js';
import { hostOf, parseWebhookUrl, URL_LENGTH_MAX } from './webhook-url.js';

const octet = fc.integer({ min: 0, max: 255 });

/** Notations of one octet that URL parsers accept. */
const written = (value: number) => [String(value), `0x${value.toString(16)}`, `0${value.toString(8)}`];

describe('parseWebhookUrl', () => {
  it.each([
    'https://example.com/hook',
    'https://example.com:8443/hook?token=a',
    'https://example.com:80/',
    'https://example.com:1024/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
    'HTTPS://EXAMPLE.com',
    'https://bücher.example/hook',
    'https://example.com./',
  ])('accepts %s', (url) => {
    expect(parseWebhookUrl(url, false).href).toBe(new URL(url).href);
  });

  it.each([
    ['http://example.com/', /starts with https/],
    ['ftp://example.com/', /starts with https/],
    ['example.com/hook', /starts with https/],
    ['', /starts with https/],
    ['https://', /starts with https/],
    ['https://user@example.com/', /user or password/],
    ['https://:secret@example.com/', /user or password/],
    ['https://example.com/#part', /fragment/],
    ['https://example.com/#', /fragment/],
    ['https://example.com:22/', /port/],
    ['https://example.com:1023/', /port/],
    [`https://example.com/${'a'.repeat(URL_LENGTH_MAX)}`, /characters/],
    [`https://example.com/${'ü'.repeat(URL_LENGTH_MAX / 2)}`, /characters/],
    ...[
      'https://localhost/',
      'https://redis/',
      'https://redis./',
      'https://a.localhost/',
      'https://LOCALHOST:8443/',
      'https://printer.local/',
      'https://metadata.google.internal/',
      'https://nas.home.arpa./',
      'https://127.0.0.1/',
      'https://127.1/',
      'https://2130706433/',
      'https://0x7f000001/',
      'https://0177.0.0.1/',
      'https://①②⑦.0.0.1/',
      'https://169.254.169.254/latest/meta-data/',
      'https://[::1]/',
      'https://[::ffff:10.0.0.1]/',
      'https://[64:ff9b::10.0.0.1]/',
      'https://[fe80::1]/',
      'https://0/',
    ].map((url) => [url, /public name or address/] as const),
  ])('refuses %s', (url, message) => {
    const parse = (): URL => parseWebhookUrl(url, false);
    expect(parse).toThrow(InvalidUrlError);
    expect(parse).toThrow(message);
  });

  it('accepts an IPv4 address in any notation only when it is public', () => {
    const notation = fc.tuple(octet, octet, octet, octet).chain(([a, b, c, d]) =>
      fc.tuple(
        fc.constant([a, b, c, d].join('.')),
        fc.oneof(
          fc.tuple(...[a, b, c, d].map((value) => fc.constantFrom(...written(value)))).map((parts) => parts.join('.')),
          fc.constant(String(((a << 24) | (b << 16) | (c << 8) | d) >>> 0)),
          fc.constant(`${a}.${(b << 16) | (c << 8) | d}`),
          fc.constant(`${a}.${b}.0x${((c << 8) | d).toString(16)}`),
        ),
      ),
    );
    fc.assert(
      fc.property(notation, ([address, text]) => {
        const url = `https://${text}/`;
        if (!isPublicAddress(address)) expect(() => parseWebhookUrl(url, false)).toThrow(InvalidUrlError);
        else expect(hostOf(parseWebhookUrl(url, false))).toBe(address);
      }),
      { numRuns: 1_000 },
    );
  });

  it('never throws anything else, for any text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          anyUrl(),
          fc.string().map((text) => `https://${text}`),
        ),
        (text) => {
          try {
            expect(parseWebhookUrl(text, false).protocol).toBe('https:');
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidUrlError);
          }
        },
      ),
    );
  });

  it('with private addresses allowed accepts them and http, and keeps the other rules', () => {
    for (const url of ['http://127.0.0.1:8080/', 'https://redis/', 'http://[::1]:3000/hook']) {
      expect(parseWebhookUrl(url, true).href).toBe(url);
    }
    for (const url of ['ftp://127.0.0.1/', 'http://a@127.0.0.1/', 'http://127.0.0.1:22/']) {
      expect(() => parseWebhookUrl(url, true)).toThrow(InvalidUrlError);
    }
  });
});
