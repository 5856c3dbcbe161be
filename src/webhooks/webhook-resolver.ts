import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { OrganizationTurns } from '../domain/organization-turns.js';
import { isPublicAddress, PRIVATE_HOST } from './webhook-url.js';
import { InvalidUrlError } from './webhook.js';

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
