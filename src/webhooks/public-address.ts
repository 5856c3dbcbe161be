import { BlockList, isIP } from 'node:net';

/**
 * IPv4 networks that are not public: IANA's special-purpose registry
 * (https://www.iana.org/assignments/iana-ipv4-special-registry, read in November 2026), multicast and class E; and the
 * address of Azure's virtual machine agent, which is public by its number only.
 */
const RESERVED_IPV4: readonly (readonly [network: string, prefixBits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

/** The well-known prefix of NAT64, whose last 32 bits are an IPv4 address. */
const NAT64 = { prefix: '64:ff9b::', bits: 96 };

/** Global unicast and NAT64; everything else is refused, which includes IPv4-mapped, local and multicast addresses. */
const GLOBAL_IPV6 = blockListOf([
  ['2000::', 3],
  [NAT64.prefix, NAT64.bits],
]);

/** Exceptions from it: protocol assignments with Teredo, documentation, 6to4, and NAT64 of reserved IPv4 addresses. */
const RESERVED = blockListOf([
  ...RESERVED_IPV4,
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
  ...RESERVED_IPV4.map(([network, bits]) => [NAT64.prefix + network, NAT64.bits + bits] as const),
]);

/** Whether an IP address belongs to the public internet; false for what is no IP address, and with a zone (`fe80::1%eth0`). */
export function isPublicAddress(address: string): boolean {
  if (address.includes('%')) return false;
  const version = isIP(address);
  if (version === 4) return !RESERVED.check(address, 'ipv4');
  return version === 6 && GLOBAL_IPV6.check(address, 'ipv6') && !RESERVED.check(address, 'ipv6');
}

function blockListOf(networks: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [network, bits] of networks) list.addSubnet(network, bits, isIP(network) === 4 ? 'ipv4' : 'ipv6');
  return list;
}
