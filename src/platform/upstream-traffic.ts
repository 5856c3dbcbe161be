/** One request to the platform that was sent and has ended. All words are small, closed sets. */
export interface UpstreamRequest {
  /** What was asked for: `player`, `captions`, … */
  kind: string;
  /** As whom it was asked. */
  client: string;
  /** Which way out it took: `direct`, `proxy-1`, …; never an address. */
  egress: string;
  /** How it ended: `ok`, `blocked:captcha`, `timeout`, `http-500`, `aborted`, … */
  outcome: string;
  /** From when its turn came to the last byte. */
  seconds: number;
}

/** What a piece of work through one exit said about that exit: `answered`, `refused`, … */
export interface EgressResult {
  egress: string;
  use: string;
  verdict: string;
}

/** One way out, as it stands now. */
export interface EgressState {
  name: string;
  /** Passed over for a while, because it was refused or not reached. */
  coolingDown: boolean;
  /** By use: whether nothing is sent through it because the platform refuses. */
  blocked: Readonly<Record<string, boolean>>;
}

export interface UpstreamState {
  inFlight: number;
  /** Requests that wait for their turn. */
  queued: number;
  inFlightMax: number;
  egresses: readonly EgressState[];
  /** Every word that an `ExitFinding` can have. */
  verdicts: readonly string[];
}

/** Is told what happens with the platform, as it happens; must not throw. */
export interface UpstreamObserver {
  request(request: UpstreamRequest): void;
  egress(verdict: EgressResult): void;
  /** Something was noticed about the platform: `kind` in general, `subject` whose, `outcome` what. */
  observed(kind: string, subject: string, outcome: string): void;
}

/** The traffic with the platform, for those who watch it: a port beside `VideoPlatform`. */
export abstract class UpstreamTraffic {
  /** Tells the observer of everything from now on. */
  abstract observe(observer: UpstreamObserver): void;

  abstract state(): UpstreamState;
}
