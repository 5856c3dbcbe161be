/**
 * What a control said, which asks for something that is known to be served. `refused`: the platform refuses the address.
 * `client_refused`: it refuses the client that was asked with, and serves another. `unreached`: no response of the platform
 * arrived. `unknown`: the response said nothing.
 */
export const CONTROL_RESULTS = ['served', 'refused', 'client_refused', 'unreached', 'unknown'] as const;
export type ControlResult = (typeof CONTROL_RESULTS)[number];

/** How the last doubt about an egress was settled. */
export interface LastControl {
  at: Date;
  /** The kind of request that was doubted. */
  kind: string;
  result: ControlResult;
}

/** One use of an egress: the platform may refuse one and not the other. */
export interface EgressUseState {
  use: string;
  /** The kind of request that the platform refuses; null while the use is not paused. */
  refusedKind: string | null;
  /** Seconds until a control is asked, which ends the pause or prolongs it; null while the use is not paused. */
  pauseSeconds: number | null;
  waiting: number;
  running: number;
  /** Requests a minute that may be sent, by kind; null for no limit. */
  pace: { kind: string; perMinute: number | null }[];
  lastControl: LastControl | null;
}

/** A network path to the platform. */
export interface EgressState {
  /** As in logs and metrics: never the URL of a proxy, which can contain a password. */
  name: string;
  /** Whether it comes last because no response arrived through it. */
  resting: boolean;
  uses: EgressUseState[];
}

/** The port to the state of the network paths that this process reaches the platform through. */
export abstract class EgressStates {
  abstract states(): EgressState[];
}
