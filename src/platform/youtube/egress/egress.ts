import type { Dispatcher } from 'undici';
import type { UseName } from './attempt.js';
import type { EgressUse } from './egress-use.js';
import type { OptionalBackoff } from './optional-backoff.js';

/**
 * A network path to the platform: this machine's own address, a proxy, or a session of a gateway. Visitor data belongs to
 * one egress.
 */
export interface Egress {
  /** For logs and metrics: never the proxy's URL, which can contain a password. Sessions have the name of their gateway. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
  readonly uses: Readonly<Record<UseName, EgressUse>>;
  readonly optional: OptionalBackoff;
  /** The same for all sessions of a gateway; undefined for other egresses. */
  readonly gateway?: object;
  /** Keeps a session open until work has ended that does not end with its attempt. */
  keepOpen(work: Promise<unknown>): void;
}
