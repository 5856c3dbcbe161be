import type { VideoFailureCode } from '../../../domain/transcript.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import type { AttemptVerdict } from '../egress/egress.js';
import type { PlayerReading } from './player-response.js';
import type { YoutubeClient } from '../../../config/environment.js';
import type { ParsedResponse } from '../innertube/innertube-client.js';

/** Why one client returned no text although another may. */
export type Evidence =
  /** The platform refuses the caller on this client: a bot check, a refused session, an empty response. */
  | 'refused'
  /** The platform refuses this egress, whatever the client: 429, 403, a captcha or consent page. */
  | 'egress-refused'
  /** Not sent: the pace of the egress cannot serve it before the deadline. */
  | 'busy'
  /** The URL of the selected track requires a PO token; it was not requested. */
  | 'token-required'
  /** The text of the selected track was empty although its URL required no token: a PO token is enforced. */
  | 'enforced'
  /** WEB was refused despite its PO token, which says nothing about the egress. */
  | 'token-refused'
  | 'timeout'
  /** The response could not be read. */
  | 'failure'
  /** The connection failed. */
  | 'unreached'
  /** The platform no longer serves the client's version. */
  | 'client-retired'
  /** Not playable on this client. */
  | 'unplayable'
  /** Unavailable according to this client. */
  | 'unavailable';

type NextStep =
  | { go: 'tracks' }
  /** Final: a fact about the video that every client reports. */
  | { go: 'stop'; code: VideoFailureCode }
  | { go: 'next'; evidence: Evidence };

type PlayerKind = PlayerReading['kind'];

/**
 * What a player response leads to. Unplayable and unavailable move on because one client alone is not reliable: VISIONOS
 * reports them for videos made for kids, which the reel plays (recorded), and retired versions report them for any video.
 * The facts that stop have a field or a wording of their own, which is the same on each of the recorded clients.
 */
const NEXT_STEPS: Readonly<Record<PlayerKind, NextStep>> = {
  tracks: { go: 'tracks' },
  'no-captions': { go: 'stop', code: 'transcript_unavailable' },
  private: { go: 'stop', code: 'video_private' },
  'members-only': { go: 'stop', code: 'video_members_only' },
  'age-restricted': { go: 'stop', code: 'video_age_restricted' },
  live: { go: 'stop', code: 'video_live' },
  upcoming: { go: 'stop', code: 'video_not_live_yet' },
  'bot-check': { go: 'next', evidence: 'refused' },
  'session-refused': { go: 'next', evidence: 'refused' },
  'client-retired': { go: 'next', evidence: 'client-retired' },
  'other-video': { go: 'next', evidence: 'refused' },
  unplayable: { go: 'next', evidence: 'unplayable' },
  unavailable: { go: 'next', evidence: 'unavailable' },
  'unknown-status': { go: 'next', evidence: 'failure' },
};

/**
 * The next step after a player response. Every client lists captions, so a playable video without any has none, also when an
 * earlier client was refused. But a client that listed tracks proves that the video has captions, whether or not their text
 * was served: a later one that reports otherwise is wrong about the video.
 *
 * @param sawTracks whether an earlier client listed the requested tracks
 */
export function stepAfter(reading: PlayerReading, sawTracks: boolean): NextStep {
  const step = NEXT_STEPS[reading.kind];
  return step.go === 'stop' && sawTracks ? { go: 'next', evidence: 'unplayable' } : step;
}

/** Whether the platform serves no client's version any more. */
export function areAllRetired(evidence: readonly Evidence[]): boolean {
  return evidence.length > 0 && evidence.every((kind) => kind === 'client-retired');
}

/** Whether a player response refuses the caller, on this client at least. */
export function isClientRefused({ kind }: PlayerReading): boolean {
  const step = NEXT_STEPS[kind];
  return step.go === 'next' && step.evidence === 'refused';
}

/** What a response says about the version of its client; null for nothing. Retired ones get `unavailable`, too. */
export function versionSupport(response: ParsedResponse<PlayerReading>): 'served' | 'retired' | null {
  if (response.kind === 'parsed') {
    const { kind } = response.value;
    if (kind === 'client-retired') return 'retired';
    return NEXT_STEPS[kind].go === 'next' ? null : 'served';
  }
  // A JSON error of status 400 rejects the request itself, of which only the video differs between videos.
  return response.kind === 'http-error' && response.status === 400 && response.media === 'json' ? 'retired' : null;
}

/** A client's report that it does not play the video. */
export interface UnavailableReport {
  client: YoutubeClient;
  kind: 'unplayable' | 'unavailable';
  /** Whether the platform served the client's version recently. A version that it does not serve reports any video so. */
  served: boolean;
}

/** What the clients reported about a video that none of them has played. */
interface UnavailableReports {
  readonly unavailableOn: readonly UnavailableReport[];
  readonly evidence: readonly Evidence[];
  /** Whether a client listed the requested tracks. */
  readonly sawTracks: boolean;
}

/**
 * The app of each client: what two clients of one app report is one fact. VISIONOS and ANDROID_VR report videos made for kids
 * as unplayable (VISIONOS recorded, ANDROID_VR in a maintained client's source). ANDROID and ANDROID_REEL have one version.
 */
const APPS: Readonly<Record<YoutubeClient, 'headset' | 'android' | 'ios' | 'web'>> = {
  VISIONOS: 'headset',
  ANDROID_VR: 'headset',
  ANDROID: 'android',
  ANDROID_REEL: 'android',
  IOS: 'ios',
  WEB: 'web',
};

/**
 * Whether the video is unavailable for certain: two apps report it, one of them in a version that the platform served
 * recently, and no client was refused or has listed tracks. Two versions can age together, so that two reports alone prove
 * nothing.
 */
export function isUnavailable({ unavailableOn, evidence, sawTracks }: UnavailableReports): boolean {
  const apps = new Set(unavailableOn.map(({ client }) => APPS[client]));
  if (apps.size < 2 || !unavailableOn.some(isReliable)) return false;
  return !sawTracks && !evidence.includes('refused') && !evidence.includes('egress-refused');
}

/** A headset reports a video made for kids as unplayable in any version. */
function isReliable({ client, kind, served }: UnavailableReport): boolean {
  return served && (kind === 'unavailable' || APPS[client] !== 'headset');
}

/** Whether this is a refusal of the caller on one client, rather than a failure or a fact about the video. */
export function isRefusal(kind: Evidence): boolean {
  return ['refused', 'token-required', 'enforced', 'token-refused'].includes(kind);
}

/** The evidence of a failed request about a client. */
export function evidenceOf(response: FailedResponse): Evidence {
  switch (response.kind) {
    case 'blocked':
      // Refusal pages and 429 concern the address; an empty response concerns this request.
      return response.reason === 'empty-body' ? 'refused' : 'egress-refused';
    case 'busy':
    case 'timeout':
      return response.kind;
    case 'network':
      return 'unreached';
    case 'http-error':
    case 'unreadable':
      return 'failure';
  }
}

/** The evidence about a client. WEB is refused for its token: neither a refusal nor an empty text concerns the egress. */
export function evidenceAbout(client: YoutubeClient, evidence: Evidence): Evidence {
  if (client !== 'WEB') return evidence;
  if (evidence === 'refused') return 'token-refused';
  return evidence === 'enforced' ? 'token-required' : evidence;
}

/** The failure code of each kind of evidence, most important first. */
const FAILURE_CODES = {
  'egress-refused': 'upstream_blocked',
  refused: 'upstream_blocked',
  enforced: 'upstream_blocked',
  'token-required': 'upstream_blocked',
  'token-refused': 'upstream_blocked',
  busy: 'upstream_busy',
  timeout: 'upstream_timeout',
  failure: 'upstream_failure',
  unreached: 'upstream_failure',
  // Unavailable according to one client, with the others retired: not certain.
  'client-retired': 'upstream_failure',
  unplayable: 'video_unavailable',
  unavailable: 'video_unavailable',
} as const satisfies Record<Evidence, VideoFailureCode>;

/** The failure code when no client returned the text. A refusal on any client is never reported as missing captions. */
export function concludeFailure(evidence: readonly Evidence[]): VideoFailureCode {
  const worst = (Object.keys(FAILURE_CODES) as Evidence[]).find((kind) => evidence.includes(kind));
  return worst === undefined ? 'upstream_failure' : FAILURE_CODES[worst];
}

/** The verdict of an attempt without a text about its egress. */
export function verdictOf(evidence: readonly Evidence[], succeeded: boolean): AttemptVerdict {
  if (evidence.some((kind) => kind === 'refused' || kind === 'egress-refused')) return 'refused';
  if (evidence.includes('enforced')) return 'withheld';
  if (evidence.includes('busy')) return 'busy';
  // The platform requires tokens for some videos from every client: no verdict about the egress.
  if (evidence.includes('token-required')) return 'nothing';
  if (succeeded) return 'answered';
  return evidence.length > 0 && evidence.every((kind) => kind === 'unreached') ? 'unreached' : 'nothing';
}
