import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The value of Express's `trust proxy` setting for `TRUST_PROXY`. */
export function trustProxySetting(value: string): false | number | string {
  if (value === 'off') return false;
  return /^[0-9]+$/.test(value) ? Number(value) : value;
}

/** An address as Azure's gateways write it: `192.0.2.7:443`, `[2001:db8::1]:443` or `[2001:db8::1]`. */
const WITH_PORT = /^(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]*)?$/;

/** `X-Forwarded-For` without ports and brackets: with them Express would trust no proxy, and all callers would count as one. */
export function withoutPorts(forwarded: string): string {
  const addresses = forwarded.split(',').map((address) => address.trim().replace(WITH_PORT, '$1$2'));
  return addresses.join(', ');
}

/** The prefix that one household or one rented machine gets. */
const IPV6_PREFIX_BITS = 64;

/**
 * The network that an address belongs to, for counting by address: an IPv4 address by itself (also in its IPv6-mapped
 * form), an IPv6 address by its prefix, e.g. `2001:db8:1:2::/64`. `unknown` for anything else: behind a trusted proxy the
 * address can be any text.
 */
export function networkOf(address: string | undefined): string {
  // An IPv6 address may end with the zone of the interface, e.g. `fe80::1%eth0`.
  const [bare = ''] = (address ?? '').split('%', 1);
  if (isIP(bare) === 0) return 'unknown';
  const parsed = ipaddr.process(bare);
  if (parsed.kind() === 'ipv4' || parsed.range() === 'loopback') return parsed.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${bare}/${IPV6_PREFIX_BITS}`);
  return `${network.toString()}/${IPV6_PREFIX_BITS}`;
}
