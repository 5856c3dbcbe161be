import type { Dispatcher } from 'undici';
import type { EgressUse } from './attempt.js';
import type { EgressGate } from './egress-gate.js';
import type { Examination } from './examination.js';

/**
 * A network path to the platform: this machine's own address, a proxy, or a session of a gateway. Visitor data belongs to
 * one egress.
 */
export interface Egress {
  /** For logs and metrics: never the proxy's URL, which can contain a password. Sessions have the name of their gateway. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
  /** When requests are sent. Sessions share those of their gateway. */
  readonly gates: Readonly<Record<EgressUse, EgressGate>>;
  readonly examinations: Readonly<Record<EgressUse, Examination>>;
  /** The same for all sessions of a gateway; undefined for other egresses. */
  readonly gateway?: object;
}
