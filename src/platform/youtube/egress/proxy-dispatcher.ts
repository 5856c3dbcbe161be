import { Agent, buildConnector, type Dispatcher, ProxyAgent, Socks5ProxyAgent } from 'undici';

export interface ConnectionOptions {
  /** Of each egress. */
  connectionsMax: number;
  connectTimeoutMs: number;
}

/**
 * Opens connections directly, or through a proxy whose URL starts with `http:`, `https:` or `socks5:`. A SOCKS5 proxy
 * resolves the names of hosts.
 *
 * @param proxyUrl null for direct connections
 */
export function openDispatcher(
  proxyUrl: string | null,
  { connectionsMax, connectTimeoutMs: timeout }: ConnectionOptions,
): Dispatcher {
  const shared = { connections: connectionsMax, pipelining: 1, connect: { timeout } };
  if (proxyUrl === null) return new Agent(shared);
  if (/^socks5:/i.test(proxyUrl)) return new Socks5ProxyAgent(proxyUrl, { connect: buildConnector({ timeout }) });
  return new ProxyAgent({ ...shared, uri: proxyUrl, requestTls: { timeout }, proxyTls: { timeout } });
}
