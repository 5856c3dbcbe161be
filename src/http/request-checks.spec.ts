import { describe, expect, it } from '@jest/globals';
import { isHost } from './request-checks.js';

describe('the value of a Host header', () => {
  it.each([
    '',
    'example.com',
    'example.com:',
    'example.com:65535',
    'a_service.internal:3000',
    '127.0.0.1',
    // Names by RFC 3986, but not hosts of a URL by WHATWG: they end in a number, or are no valid Punycode.
    'app.1',
    'web.2:3000',
    '1.2.3.4.5',
    'xn--a',
    "a-._~!$&'()*+,;=b",
    'caf%C3%A9.example',
    'M\u00c3\u00bcller',
    '[::1]',
    '[::1]:80',
    '[::ffff:192.0.2.1]:80',
  ])('is valid: %s', (value) => {
    expect(isHost(value)).toBe(true);
  });

  it.each([
    '@',
    'user@example.com',
    'example.com/path',
    'example.com?query',
    'example.com#fragment',
    'example.com\\path',
    'a b',
    'a\tb',
    '<a>',
    'a"b',
    '%zz',
    '%4',
    ':80',
    'example.com:80:80',
    'example.com:port',
    'example.com:-1',
    'example.com:65536',
    `example.com:${'9'.repeat(400)}`,
    '::1',
    '[',
    '[]',
    '[::1',
    '[127.0.0.1]',
    '[::1%25eth0]',
    '[1:2:3]',
    '[::1]a',
  ])('is invalid: %s', (value) => {
    expect(isHost(value)).toBe(false);
  });
});
