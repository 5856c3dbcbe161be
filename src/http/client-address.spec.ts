import { describe, expect, it } from '@jest/globals';
import { networkOf } from './client-address.js';

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
