import { describe, expect, it } from '@jest/globals';
import { networkOf } from './client-address.js';

describe('the network that failures of an address are counted for', () => {
  it.each<[string | undefined, number, string]>([
    ['192.0.2.7', 64, '192.0.2.7'],
    ['::ffff:192.0.2.7', 64, '192.0.2.7'],
    ['::FFFF:c000:207', 48, '192.0.2.7'],
    ['::1', 64, '::1'],
    ['2001:DB8:1:2:3:4:5:6', 64, '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6', 48, '2001:db8:1::/48'],
    ['2001:db8::6', 64, '2001:db8::/64'],
    ['2001:0:0:2::6', 64, '2001:0:0:2::/64'],
    ['fe80::1%eth0', 64, 'fe80::/64'],
    ['1:2:3:4:5:6:7:8', 48, '1:2:3::/48'],
    ['::2', 64, '::/64'],
    ['64:ff9b::192.0.2.7', 64, '64:ff9b::/64'],
    ['a caller wrote this', 64, 'unknown'],
    ['192.0.2.7:443', 64, 'unknown'],
    ['', 64, 'unknown'],
    [undefined, 64, 'unknown'],
  ])('of %s with a prefix of %i bits is %s', (address, bits, network) => {
    expect(networkOf(address, bits)).toBe(network);
  });
});
