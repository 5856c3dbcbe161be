import type { Dispatcher } from 'undici';
import type { RequestControl } from './request-control.js';

/** What an egress is used for. The platform may refuse one use and not the other. */
export const EGRESS_USES = ['channel', 'video'] as const;
export type EgressUse = (typeof EGRESS_USES)[number];

/**
 * What an attempt says about its egress. `refused`: the platform blocks it. `unreached`: no response arrived through it.
 * These lead to another egress. `busy`: it cannot serve the attempt before the deadline. `withheld`: the caption texts were
 * empty, which means a block when it happens for one video after another and concerns the video otherwise. `nothing`: no
 * sign of any.
 */
export const ATTEMPT_VERDICTS = ['answered', 'refused', 'withheld', 'unreached', 'busy', 'nothing'] as const;
export type AttemptVerdict = (typeof ATTEMPT_VERDICTS)[number];

/**
 * A network path to the platform: this machine's own address, a proxy, or a session of a gateway. Visitor data belongs to
 * one egress.
 */
export interface Egress {
  /** For logs and metrics: never the proxy's URL, which can contain a password. Sessions have the name of their gateway. */
  readonly name: string;
  readonly dispatcher: Dispatcher;
  /** Sessions share those of their gateway. */
  readonly controls: Readonly<Record<EgressUse, RequestControl>>;
  /** The same for all sessions of a gateway; undefined for other egresses. */
  readonly gateway?: object;
}
