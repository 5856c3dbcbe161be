import type { VideoFailureCode } from '../../../domain/transcript.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import type { AttemptVerdict } from '../egress/egress-pool.js';
import type { PlayerReading } from './player-response.js';

/** Why one client returned no text although another may. */
export type Evidence =
  /** The platform refuses the caller on this client. */
  | 'refused'
  /** The platform refuses this egress, whatever the client. */
  | 'exit-refused'
  /** There are tracks, and the URL of the needed one requires a PO token; it was not requested. */
  | 'gated'
  /** There are tracks, and the text came empty although the URL required nothing: a PO token is enforced. */
  | 'enforced'
  | 'timeout'
  /** The response could not be read. */
  | 'failure'
  /** The connection failed. */
  | 'unreached'
  /** Not playable on this client. */
  | 'unplayable';

export type NextStep =
  | { go: 'tracks' }
  /** Final: a fact about the video that every client reports. */
  | { go: 'stop'; code: VideoFailureCode }
  | { go: 'next'; evidence: Evidence };

type PlayerKind = PlayerReading['kind'];

/**
 * What a player response leads to. UNPLAYABLE moves on because it was recorded on one client (WEB) for a video that
 * VISIONOS and ANDROID play; the facts that stop are the same on each of the recorded clients.
 */
const NEXT_STEPS: Readonly<Record<PlayerKind, NextStep>> = {
  tracks: { go: 'tracks' },
  'no-captions': { go: 'stop', code: 'transcript_unavailable' },
  private: { go: 'stop', code: 'video_private' },
  'members-only': { go: 'stop', code: 'video_members_only' },
  'age-restricted': { go: 'stop', code: 'video_age_restricted' },
  unavailable: { go: 'stop', code: 'video_unavailable' },
  live: { go: 'stop', code: 'video_live' },
  upcoming: { go: 'stop', code: 'video_not_live_yet' },
  'bot-check': { go: 'next', evidence: 'refused' },
  'other-video': { go: 'next', evidence: 'refused' },
  unplayable: { go: 'next', evidence: 'unplayable' },
  'unknown-status': { go: 'next', evidence: 'failure' },
};

/**
 * The next step after a player response, given the evidence of earlier clients. Every client lists captions, so a playable
 * video without any has none, also when an earlier client was refused. But a client that listed tracks proves that the video
 * has captions: when a later one reports otherwise, the text stays withheld.
 */
export function stepAfter(reading: PlayerReading, earlier: readonly Evidence[]): NextStep {
  const step = NEXT_STEPS[reading.kind];
  return step.go === 'stop' && hasSeenTracks(earlier) ? { go: 'next', evidence: 'unplayable' } : step;
}

/** Whether an earlier client listed the requested tracks but did not get their text. */
export function hasSeenTracks(evidence: readonly Evidence[]): boolean {
  return evidence.includes('gated') || evidence.includes('enforced');
}

/** Whether this is a refusal of the caller on one client, rather than a failure or a fact about the video. */
export function isRefusal(kind: Evidence): boolean {
  return kind === 'refused' || kind === 'gated' || kind === 'enforced';
}

/** What a failed request says about a client. */
export function evidenceOf(response: FailedResponse): Evidence {
  switch (response.kind) {
    case 'blocked':
      // Refusal pages and 429 concern the address; an empty response concerns this request.
      return response.reason === 'empty-body' ? 'refused' : 'exit-refused';
    case 'timeout':
      return 'timeout';
    case 'network':
      return 'unreached';
    case 'http-error':
    case 'unreadable':
      return 'failure';
  }
}

/** The failure code of each kind of evidence, most important first. */
const FAILURE_CODES = {
  'exit-refused': 'upstream_blocked',
  refused: 'upstream_blocked',
  enforced: 'upstream_blocked',
  gated: 'upstream_blocked',
  timeout: 'upstream_timeout',
  failure: 'upstream_failure',
  unreached: 'upstream_failure',
  unplayable: 'video_unavailable',
} as const satisfies Record<Evidence, VideoFailureCode>;

/** The failure code when no client returned the text. A refusal on any client is never reported as missing captions. */
export function concludeFailure(evidence: readonly Evidence[]): VideoFailureCode {
  const worst = (Object.keys(FAILURE_CODES) as Evidence[]).find((kind) => evidence.includes(kind));
  return worst === undefined ? 'upstream_failure' : FAILURE_CODES[worst];
}

/** What an attempt without a text says about its egress. */
export function verdictOf(evidence: readonly Evidence[], succeeded: boolean): AttemptVerdict {
  if (evidence.some((kind) => kind === 'refused' || kind === 'exit-refused')) return 'refused';
  if (evidence.includes('enforced')) return 'withheld';
  // The platform requires tokens for some videos from everybody: no verdict about the egress.
  if (evidence.includes('gated')) return 'nothing';
  if (succeeded) return 'answered';
  return evidence.length > 0 && evidence.every((kind) => kind === 'unreached') ? 'unreached' : 'nothing';
}
