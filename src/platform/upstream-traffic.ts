/** One request to the platform that was sent and has ended. All words are small, closed sets. */
export interface UpstreamRequest {
  /** What was asked for: `player`, `captions`, … */
  kind: string;
  /** As whom it was asked. */
  client: string;
  /** Which way out it took: `direct`, `proxy-1`, …; never an address. */
  exit: string;
  /** How it ended: `ok`, `blocked:captcha`, `timeout`, `http-500`, `aborted`, … */
  outcome: string;
  /** From when its turn came to the last byte. */
  seconds: number;
}

/** What a piece of work through one exit said about that exit: `answered`, `refused`, … */
export interface ExitFinding {
  exit: string;
  use: string;
  finding: string;
}

/** One way out, as it stands now. */
export interface ExitState {
  name: string;
  /** Passed over for a while, because it was refused or not reached. */
  resting: boolean;
  /** By use: whether nothing is sent through it because the platform refuses. */
  shut: Readonly<Record<string, boolean>>;
}

export interface UpstreamState {
  inFlight: number;
  /** Requests that wait for their turn. */
  queued: number;
  inFlightMax: number;
  exits: readonly ExitState[];
  /** Every word that an `ExitFinding` can have. */
  findings: readonly string[];
}

/** Is told what happens with the platform, as it happens; must not throw. */
export interface UpstreamObserver {
  request(request: UpstreamRequest): void;
  exit(finding: ExitFinding): void;
  /** Something was noticed about the platform: `kind` in general, `subject` whose, `outcome` what. */
  noticed(kind: string, subject: string, outcome: string): void;
}

/** The traffic with the platform, for those who watch it: a port beside `VideoPlatform`. */
export abstract class UpstreamTraffic {
  /** Tells the observer of everything from now on. */
  abstract observe(observer: UpstreamObserver): void;

  abstract state(): UpstreamState;
}
