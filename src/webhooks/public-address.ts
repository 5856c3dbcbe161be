import ipaddr from 'ipaddr.js';

/** The agent of Azure in every virtual machine, at an address that is public by its number only. */
const AZURE_AGENT = '168.63.129.16';

/** The only IPv6 addresses that are assigned to hosts on the internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
/** The well-known prefix of NAT64, whose last 32 bits are an IPv4 address. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** Special networks that the library takes for unicast: protocol assignments with Teredo, and documentation. */
const RESERVED_IPV6 = ['2001::/23', '3fff::/20'].map((network) => ipaddr.IPv6.parseCIDR(network));

/** Whether an IP address belongs to the public internet; false for what is no IP address, and with a zone (`fe80::1%eth0`). */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.IPv4.isValidFourPartDecimal(text) && !ipaddr.IPv6.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) return address.range() === 'unicast' && text !== AZURE_AGENT;
  if (address.zoneId) return false;
  if (address.match(NAT64)) return isPublicAddress(address.toByteArray().slice(-4).join('.'));
  const isGlobal = address.match(GLOBAL_UNICAST) && !RESERVED_IPV6.some((network) => address.match(network));
  return isGlobal && address.range() === 'unicast';
}
