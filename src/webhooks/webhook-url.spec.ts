import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidUrlError } from './webhook.js';
import { isPublicAddress, parseWebhookUrl, PRIVATE_HOST, URL_LENGTH_MAX } from './webhook-url.js';

describe('parseWebhookUrl', () => {
  it.each([
    'https://example.com:8443/hook?token=a',
    'https://example.com:80/',
    'https://example.com:1024/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
    'HTTPS://EXAMPLE.com',
    'https://bücher.example/hook',
  ])('accepts %s', (url) => {
    expect(parseWebhookUrl(url, false).href).toBe(new URL(url).href);
  });

  it.each([
    ['http://example.com/', /starts with https/],
    ['example.com/hook', /starts with https/],
    ['', /starts with https/],
    ['https://user@example.com/', /user or password/],
    ['https://:secret@example.com/', /user or password/],
    ['https://example.com/#', /fragment/],
    ['https://example.com:22/', /port/],
    ['https://example.com:1023/', /port/],
    [`https://example.com/${'ü'.repeat(URL_LENGTH_MAX / 2)}`, /characters/],
    ...[
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://①②⑦.0.0.1/',
      'https://169.254.169.254/latest/meta-data/',
      'https://[::1]/',
      'https://[::ffff:10.0.0.1]/',
      'https://[64:ff9b::10.0.0.1]/',
      'https://0/',
    ].map((url) => [url, PRIVATE_HOST] as const),
  ])('refuses %s', (url, message) => {
    const parse = (): URL => parseWebhookUrl(url, false);
    expect(parse).toThrow(InvalidUrlError);
    expect(parse).toThrow(message);
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

/** The first and the last address of each network that is not public. */
const PRIVATE_IPV4 = [
  '0.0.0.0',
  '0.255.255.255',
  '10.0.0.0',
  '10.255.255.255',
  '127.0.0.0',
  '127.255.255.255',
  '100.64.0.0',
  '100.127.255.255',
  '169.254.0.0',
  '169.254.255.255',
  '172.16.0.0',
  '172.31.255.255',
  '192.0.0.0',
  '192.0.0.255',
  '192.0.2.0',
  '192.0.2.255',
  '192.88.99.0',
  '192.168.0.0',
  '192.168.255.255',
  '198.18.0.0',
  '198.19.255.255',
  '198.51.100.0',
  '203.0.113.255',
  '224.0.0.0',
  '255.255.255.255',
  '168.63.129.16',
];
describe('isPublicAddress', () => {
  it('refuses the reserved IPv4 addresses, and every IPv6 address that contains one', () => {
    for (const address of PRIVATE_IPV4) {
      const forms = ['', '::ffff:', '::', '::ffff:0:', '64:ff9b::'].map((prefix) => prefix + address);
      expect(forms.filter(isPublicAddress)).toEqual([]);
    }
  });

  it('refuses every IPv6 address outside of global unicast', () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
    const outside = fc
      .tuple(
        group.filter((first) => parseInt(first, 16) >> 13 !== 1 && first !== '64'),
        fc.array(group, { minLength: 7, maxLength: 7 }),
      )
      .map(([first, rest]) => [first, ...rest].join(':'));
    fc.assert(fc.property(outside, (address) => !isPublicAddress(address)));
  });

  it.each([
    '2606:4700::1%eth0',
    '2001::1',
    '2001:0:53aa:64c::1',
    '2001:db8::1',
    '2002:808:808::1',
    '3fff::1',
    '64:ff9b:1::808:808',
    '',
    'localhost',
    '127.1',
    '0x7f.0.0.1',
    '8.8.8.8.8',
    '[::1]',
    'example.com',
  ])('refuses %p', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each(['8.8.8.8', '168.63.129.17', '64:ff9b::8.8.8.8', '2606:4700:4700::1111', '2001:4860::8888'])(
    'accepts %s',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );
});
