import { describe, expect, it } from '@jest/globals';
import { networkOf, withoutPorts } from './request-context.js';

describe('the network that failures of an address are counted for', () => {
  it.each<[string | undefined, string]>([
    ['192.0.2.7', '192.0.2.7'],
    ['::FFFF:c000:207', '192.0.2.7'],
    ['::1', '::1'],
    ['2001:DB8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b::/64'],
    ['a caller wrote this', 'unknown'],
    ['192.0.2.7:443', 'unknown'],
    [undefined, 'unknown'],
  ])('of %s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe('the forwarded addresses', () => {
  it.each([
    ['192.0.2.7:443', '192.0.2.7'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['192.0.2.7:51234,[::1]:80, 10.0.0.1', '192.0.2.7, ::1, 10.0.0.1'],
    ['a caller wrote this:80', 'a caller wrote this:80'],
  ])('%s are %s', (forwarded, addresses) => {
    expect(withoutPorts(forwarded)).toBe(addresses);
  });
});
