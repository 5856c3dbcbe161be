/** One finished request to the platform. All labels come from small, closed sets. */
export interface UpstreamRequest {
  /** What was requested: `player`, `captions`, … */
  kind: string;
  /** The InnerTube client that it was sent as. */
  client: string;
  /** `direct`, `proxy-1`, …; never an address. */
  egress: string;
  /** How it ended: `ok`, `blocked:captcha`, `timeout`, `http-500`, `aborted`, … */
  outcome: string;
  /** From when its turn came to the last byte. */
  seconds: number;
}

/** The verdict of one attempt about its egress: `answered`, `refused`, … */
export interface EgressResult {
  egress: string;
  use: string;
  verdict: string;
}

/** The current state of one egress. */
export interface EgressState {
  name: string;
  /** Skipped for a while, because it was refused or not reached. */
  coolingDown: boolean;
  /** By use: whether nothing is sent through it because the platform refuses it. */
  blocked: Readonly<Record<string, boolean>>;
}

export interface UpstreamState {
  inFlight: number;
  /** Requests that wait for their turn. */
  queued: number;
  inFlightMax: number;
  egresses: readonly EgressState[];
  /** Every verdict that an `EgressResult` can have. */
  verdicts: readonly string[];
}

/** Receives events of the traffic with the platform as they happen; must not throw. */
export interface UpstreamObserver {
  request(request: UpstreamRequest): void;
  egress(verdict: EgressResult): void;
  /** An observation about the platform, by its kind, its subject and its outcome. */
  observed(kind: string, subject: string, outcome: string): void;
}

/** The traffic with the platform, for metrics: a port beside `VideoPlatform`. */
export abstract class UpstreamTraffic {
  /** Passes all events from now on to the observer. */
  abstract observe(observer: UpstreamObserver): void;

  abstract state(): UpstreamState;
}
