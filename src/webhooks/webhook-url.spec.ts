import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyUrl } from '../../test/any-text.js';
import { InvalidUrlError } from './webhook.js';
import { hostOf, isPublicAddress, parseWebhookUrl, URL_LENGTH_MAX } from './webhook-url.js';

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

const anyIpv4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'));

/** The definition in numbers, independent of the prefixes in the code. */
function isReservedIpv4(address: string): boolean {
  const [a = 0, b = 0, c = 0] = address.split('.').map(Number);
  return (
    [0, 10, 127].includes(a) ||
    a >= 224 ||
    (a === 100 && b >= 64 && b <= 127) ||
    (a === 169 && b === 254) ||
    (a === 172 && b >= 16 && b <= 31) ||
    (a === 192 && ((b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99) || b === 168)) ||
    (a === 192 && ((b === 31 && c === 196) || (b === 52 && c === 193) || (b === 175 && c === 48))) ||
    (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) ||
    (a === 203 && b === 0 && c === 113) ||
    address === '168.63.129.16'
  );
}

/** IPv4 addresses in and beside the reserved networks, and any. */
const ipv4 = fc.oneof(
  anyIpv4,
  fc
    .tuple(
      fc.constantFrom('10', '100', '127', '169', '172', '192', '198', '203', '223', '224', '255'),
      octet,
      octet,
      octet,
    )
    .map((octets) => octets.join('.')),
  fc
    .tuple(
      fc.constantFrom(
        '100.63',
        '100.64',
        '100.127',
        '100.128',
        '169.253',
        '169.254',
        '172.15',
        '172.16',
        '172.31',
        '172.32',
        '192.0',
        '192.88',
        '192.168',
        '198.18',
        '198.20',
        '198.51',
        '203.0',
        '168.63',
      ),
      octet,
      octet,
    )
    .map((parts) => parts.join('.')),
);

const ipv6Of = (...fixed: string[]) =>
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8 - fixed.length, maxLength: 8 - fixed.length })
    .map((groups) => [...fixed, ...groups.map((group) => group.toString(16))].join(':'));

describe('isPublicAddress', () => {
  it('refuses exactly the reserved IPv4 addresses', () => {
    fc.assert(
      fc.property(ipv4, (address) => isPublicAddress(address) === !isReservedIpv4(address)),
      { numRuns: 5_000 },
    );
  });

  it('refuses every IPv4 address in its mapped, compatible and 6to4 form', () => {
    fc.assert(
      fc.property(ipv4, (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
        const groups = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16)).join(':');
        const forms = [
          `::ffff:${address}`,
          `::ffff:${groups}`,
          `::${address}`,
          `::ffff:0:${address}`,
          `2002:${groups}::1`,
        ];
        return forms.every((form) => !isPublicAddress(form));
      }),
    );
  });

  it('judges a NAT64 address by the IPv4 address in it', () => {
    fc.assert(
      fc.property(ipv4, (address) => isPublicAddress(`64:ff9b::${address}`) === !isReservedIpv4(address)),
      { numRuns: 2_000 },
    );
    expect(isPublicAddress('64:ff9b:1::808:808')).toBe(false);
  });

  it('refuses every IPv6 address outside of global unicast', () => {
    const outside = fc
      .integer({ min: 0, max: 0xffff })
      .filter((group) => group >> 13 !== 1 && group !== 0x64)
      .chain((group) => ipv6Of(group.toString(16)));
    fc.assert(fc.property(outside, (address) => !isPublicAddress(address)));
  });

  it.each([
    ...['127.0.0.1', '0.0.0.0', '255.255.255.255', '224.0.0.1', '169.254.169.254', '100.100.100.200', '192.0.0.192'],
    ...['::', '::1', 'fe80::1', 'fe80::1%eth0', '2606:4700::1%eth0', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1'],
    ...['2001::1', '2001:0:53aa:64c::1', '2001:db8::1', '3fff::1', '100::1', '5f00::1'],
    ...['', 'localhost', '1', '127.1', '0x7f.0.0.1', '017700000001', '8.8.8.8.8', '[::1]', 'example.com'],
  ])('refuses %p', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '172.32.0.1',
    '192.0.1.1',
    '2606:4700:4700::1111',
    '2a00:1450:4001::200e',
    '2001:4860::8888',
  ])('accepts %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});
