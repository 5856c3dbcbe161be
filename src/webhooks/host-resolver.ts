import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';

const QUERY_TIMEOUT_MS = 2_000;
const QUERY_TRIES = 2;
/** There is no such name, or it has no address. */
const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA']);

/** A host has no address, or its name servers did not say. */
export class HostResolutionError extends Error {
  /** @param doesNotExist whether the name servers responded that there is no address */
  constructor(
    readonly doesNotExist: boolean,
    cause: unknown,
  ) {
    super('The host cannot be resolved.', { cause });
    this.name = 'HostResolutionError';
  }
}

/**
 * Looks up the addresses of a host. By DNS queries rather than the system's resolver: that one occupies a thread of the
 * pool until slow name servers respond, which are the receiver's choice. With `WEBHOOK_ALLOW_PRIVATE_ADDRESSES` the system's
 * resolver is used, which knows the names of one's own network.
 */
@Injectable()
export class HostResolver {
  /** By default those of the machine; tests set them. */
  nameServers: readonly string[] | undefined = undefined;

  constructor(private readonly environment: Environment) {}

  /**
   * @param host a name or an IP address, which is its own address
   * @returns at least one address
   * @throws HostResolutionError, also when the signal is aborted
   */
  async resolve(host: string, signal: AbortSignal): Promise<string[]> {
    if (isIP(host) !== 0) return [host];
    const found = this.environment.WEBHOOK_ALLOW_PRIVATE_ADDRESSES
      ? await bySystem(host, signal)
      : await this.byDns(host, signal);
    const addresses = found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (addresses.length > 0) return addresses;
    const causes = found.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    throw new HostResolutionError(causes.every(saysNoAddress), causes[0]);
  }

  private async byDns(host: string, signal: AbortSignal): Promise<Found> {
    const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
    if (this.nameServers) resolver.setServers(this.nameServers);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}

type Found = readonly PromiseSettledResult<string[]>[];

async function bySystem(host: string, signal: AbortSignal): Promise<Found> {
  const aborted = new Promise<never>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
  const found = lookup(host, { all: true }).then((addresses) => addresses.map(({ address }) => address));
  return Promise.allSettled([Promise.race([found, aborted])]);
}

function saysNoAddress(error: unknown): boolean {
  return NO_ADDRESS.has(errorCode(error));
}

/** The code of an error of Node.js or undici; empty when it has none. */
export function errorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
