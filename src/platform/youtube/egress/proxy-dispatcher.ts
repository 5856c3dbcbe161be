import { randomBytes } from 'node:crypto';
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

/** The placeholder in the URL of a rotating gateway. */
const SESSION = '{session}';
/** The requests of one attempt are sent one after the other, and its exact date beside them. */
const CONNECTIONS_PER_SESSION = 2;

/** Whether a proxy is a rotating gateway, which gives each session an address of its own. */
export function isGatewayUrl(proxyUrl: string): boolean {
  return proxyUrl.includes(SESSION);
}

/** The sessions of one rotating gateway. Each has connections of its own, so that it gets an address of its own. */
export class GatewaySessions {
  private readonly live = new Set<Dispatcher>();

  constructor(
    private readonly urlTemplate: string,
    private readonly options: Pick<ConnectionOptions, 'connectTimeoutMs'>,
  ) {}

  /** Opens a session, which must be closed. */
  open(): Dispatcher {
    const url = this.urlTemplate.replaceAll(SESSION, randomBytes(8).toString('hex'));
    const session = openDispatcher(url, { ...this.options, connectionsMax: CONNECTIONS_PER_SESSION });
    this.live.add(session);
    return session;
  }

  /** Ends the session's connections, also those in use. */
  async close(session: Dispatcher): Promise<void> {
    this.live.delete(session);
    await session.destroy();
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.live].map((session) => this.close(session)));
  }
}
