import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isPublicAddress } from './public-address.js';

const octet = fc.integer({ min: 0, max: 255 });
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
