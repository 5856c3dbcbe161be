import { isIP } from 'node:net';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import ipaddr from 'ipaddr.js';
import { parseUrl } from '../domain/references/page-url.js';
import { hasNoApiKey } from '../http/routes/field.js';
import { InvalidUrlError } from './webhook.js';
import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { OrganizationTurns } from '../domain/waiting.js';

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

export const URL_LENGTH_MAX = 2_048;

/** The ports below 1024 that webhooks may use. */
const WEB_PORTS = new Set([80, 443]);
const PRIVILEGED_PORT_MAX = 1_023;

/** What is wrong with a host that is or resolves to an address that is not public, or does not resolve. */
export const PRIVATE_HOST = 'The host of url must be a public name or address, and resolve within 3 seconds.';

/**
 * Parses the URL of a webhook. The parser normalizes every notation of an IPv4 address (`0x7f.1`, `2130706433`), so an
 * address in the URL is checked in the form that is connected to.
 *
 * @param allowPrivate also accepts `http:` and hosts that are not public
 * @throws InvalidUrlError
 */
export function parseWebhookUrl(text: string, allowPrivate: boolean): URL {
  const url = parseUrl(text);
  const schemes = allowPrivate ? ['https:', 'http:'] : ['https:'];
  if (!url || !schemes.includes(url.protocol)) {
    throw new InvalidUrlError(`url must be a URL that starts with ${schemes.join('// or ')}//.`);
  }
  // As it is stored: escaping can make it longer.
  if (url.href.length > URL_LENGTH_MAX) {
    throw new InvalidUrlError(`url must have at most ${URL_LENGTH_MAX} characters.`);
  }
  if (url.username !== '' || url.password !== '') throw new InvalidUrlError('url must not contain a user or password.');
  // Parsed: the parser has removed what could hide a key, such as a tab.
  if (!hasNoApiKey(url.href)) throw new InvalidUrlError('url must not contain an API key or the secret of a webhook.');
  if (text.includes('#')) throw new InvalidUrlError('url must not contain a fragment (#).');
  const port = Number(url.port);
  if (port > 0 && port <= PRIVILEGED_PORT_MAX && !WEB_PORTS.has(port)) {
    throw new InvalidUrlError('The port of url must be 80, 443 or above 1023.');
  }
  const host = hostOf(url);
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) throw new InvalidUrlError(PRIVATE_HOST);
  return url;
}

/** The name or the IP address of a URL, without the brackets of IPv6. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

const LOOKUPS_PER_ORGANIZATION_MAX = 2;

/**
 * Resolves the hosts of webhooks by DNS queries of its own. `dns.lookup` would occupy the few threads in which the process
 * resolves every other name, for as long as a stranger's name servers are silent.
 */
@Injectable()
export class WebhookResolver {
  /** For a look-up, including the wait for earlier ones of its organization. */
  timeoutMs = 3_000;
  /** Tests replace it. */
  openResolver = (): Resolver => new Resolver({ timeout: 1_000, tries: 2 });
  private readonly turns = new OrganizationTurns(LOOKUPS_PER_ORGANIZATION_MAX);

  constructor(private readonly environment: Environment) {}

  /**
   * The addresses of a host, all of them allowed.
   *
   * @throws InvalidUrlError, the same for names that are missing, silent and private, which reveals no name of the network
   */
  async addressesOf(host: string, organizationId: string): Promise<LookupAddress[]> {
    const endMs = performance.now() + this.timeoutMs;
    const addresses = await this.turns.run(organizationId, () => this.lookup(host, endMs - performance.now()));
    const isAllowed =
      this.environment.WEBHOOK_ALLOW_PRIVATE || addresses.every(({ address }) => isPublicAddress(address));
    if (addresses.length === 0 || !isAllowed) throw new InvalidUrlError(PRIVATE_HOST);
    return addresses;
  }

  /** @returns none when the name servers do not know the name, or do not respond in time */
  private async lookup(host: string, timeoutMs: number): Promise<LookupAddress[]> {
    // Name servers need not know it. It is private, so it needs WEBHOOK_ALLOW_PRIVATE.
    if (host === 'localhost') return ['127.0.0.1', '::1'].map((address) => ({ address, family: isIP(address) }));
    const resolver = this.openResolver();
    const timer = setTimeout(() => resolver.cancel(), timeoutMs);
    const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    clearTimeout(timer);
    const addresses = found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    return addresses.map((address) => ({ address, family: isIP(address) }));
  }
}
