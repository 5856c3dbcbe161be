import type { YoutubeClient } from '../../../config/environment.js';
import type { VideoFailureCode } from '../../../domain/transcript.js';
import type { AttemptVerdict } from '../egress/egress.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import type { PlayerProblem, PlayerReading } from './player-response.js';

/**
 * Why one client returned no text although another may, with the failure code when none did: the most important first. A
 * refusal on any client is never reported as missing captions.
 */
const FAILURE_CODES = {
  /** The platform refuses this egress, whatever the client: 429, 403, a captcha or consent page. */
  'egress-refused': 'upstream_blocked',
  /** The platform refuses the caller on this client: a bot check, a refused session, an empty response. */
  refused: 'upstream_blocked',
  /** The text of the selected track was empty although its URL required no token: a PO token is enforced. */
  enforced: 'upstream_blocked',
  /** The URL of the selected track requires a PO token, so it was not requested; or WEB was refused despite its token. */
  'token-required': 'upstream_blocked',
  /** Not sent: the pace of the egress cannot serve it before the deadline. */
  busy: 'upstream_busy',
  timeout: 'upstream_timeout',
  /** The response could not be read. */
  failure: 'upstream_failure',
  /** The connection failed. */
  unreached: 'upstream_failure',
  /** The platform no longer serves the client's version. Unavailable according to the others is not certain. */
  'client-retired': 'upstream_failure',
  /** Not playable on this client. */
  unplayable: 'video_unavailable',
  /** Unavailable according to this client. */
  unavailable: 'video_unavailable',
} as const satisfies Record<string, VideoFailureCode>;

export type Evidence = keyof typeof FAILURE_CODES;

/** What was found out with one client; null for what concerns all. */
export interface Finding {
  client: YoutubeClient | null;
  kind: Evidence;
}

/** `code`: final, a fact about the video that every client reports. `evidence`: the next client is tried. */
type NextStep = { code: VideoFailureCode; evidence?: never } | { evidence: Evidence; code?: never };

/**
 * What a player response leads to. Unplayable and unavailable move on because one client alone is not reliable: VISIONOS
 * reports them for videos made for kids, which the reel plays (recorded), and retired versions report them for any video.
 * The facts that stop have a field or a wording of their own, which is the same on each of the recorded clients.
 */
const NEXT_STEPS: Readonly<Record<PlayerProblem, NextStep>> = {
  'no-captions': { code: 'transcript_unavailable' },
  private: { code: 'video_private' },
  'members-only': { code: 'video_members_only' },
  'age-restricted': { code: 'video_age_restricted' },
  live: { code: 'video_live' },
  upcoming: { code: 'video_not_live_yet' },
  'bot-check': { evidence: 'refused' },
  'session-refused': { evidence: 'refused' },
  'other-video': { evidence: 'refused' },
  'client-retired': { evidence: 'client-retired' },
  unplayable: { evidence: 'unplayable' },
  unavailable: { evidence: 'unavailable' },
  'unknown-status': { evidence: 'failure' },
};

/**
 * The next step after a player response. Every client lists captions, so a playable video without any has none, also when an
 * earlier client was refused. But a client that listed tracks proves that the video has captions, whether or not their text
 * was served: a later one that reports otherwise is wrong about the video.
 *
 * @param sawTracks whether an earlier client listed the requested tracks
 */
export function stepAfter(problem: PlayerProblem, sawTracks: boolean): NextStep {
  const step = NEXT_STEPS[problem];
  return step.code !== undefined && sawTracks ? { evidence: 'unplayable' } : step;
}

/** Whether a player response refuses the caller, on this client at least. */
export function isClientRefused({ kind }: PlayerReading): boolean {
  return kind !== 'tracks' && NEXT_STEPS[kind].evidence === 'refused';
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
 *
 * @param isServed whether the platform served a client's version recently: one that it does not serve reports any video so
 */
export function isUnavailable(
  { findings, sawTracks }: { findings: readonly Finding[]; sawTracks: boolean },
  isServed: (client: YoutubeClient) => boolean,
): boolean {
  if (sawTracks || findings.some(({ kind }) => kind === 'refused' || kind === 'egress-refused')) return false;
  const reports = findings.flatMap(({ client, kind }) =>
    client !== null && (kind === 'unplayable' || kind === 'unavailable') ? [{ app: APPS[client], client, kind }] : [],
  );
  // A headset reports a video made for kids as unplayable in any version.
  const isReliable = reports.some(
    ({ app, client, kind }) => isServed(client) && (kind === 'unavailable' || app !== 'headset'),
  );
  return isReliable && new Set(reports.map(({ app }) => app)).size >= 2;
}

/** Whether this is a refusal of the caller on one client, rather than a failure or a fact about the video. */
export function isRefusal(kind: Evidence): boolean {
  return ['refused', 'token-required', 'enforced'].includes(kind);
}

/** The evidence of a request without a readable response. */
export function evidenceOf(response: FailedResponse | { kind: 'unparsable' }): Evidence {
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
    case 'unparsable':
      return 'failure';
  }
}

/** The failure code when no client returned the text. */
export function concludeFailure(evidence: readonly Evidence[]): VideoFailureCode {
  const [, code] = Object.entries(FAILURE_CODES).find(([kind]) => evidence.some((each) => each === kind)) ?? [];
  return code ?? 'upstream_failure';
}

/** The verdict of an attempt without a text about its egress. @param sawTracks whether a client listed the requested tracks */
export function verdictOf(evidence: readonly Evidence[], sawTracks: boolean): AttemptVerdict {
  if (evidence.some((kind) => kind === 'refused' || kind === 'egress-refused')) return 'refused';
  if (evidence.includes('enforced')) return 'withheld';
  if (evidence.includes('busy')) return 'busy';
  // The platform requires tokens for some videos from every client: no verdict about the egress.
  if (evidence.includes('token-required')) return 'nothing';
  if (sawTracks || evidence.includes('unplayable') || evidence.includes('unavailable')) return 'answered';
  return evidence.length > 0 && evidence.every((kind) => kind === 'unreached') ? 'unreached' : 'nothing';
}
