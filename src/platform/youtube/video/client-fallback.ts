import type { VideoFailureCode } from '../../../domain/transcript.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import type { AttemptVerdict } from '../egress/proxy-failover.js';
import type { PlayerReading } from './player-response.js';

/** Why one client brought no text although another may. */
export type Evidence =
  /** The caller is refused on this client. */
  | 'refused'
  /** The caller is refused at this exit, whatever the client. */
  | 'exit-refused'
  /** There are tracks, and the URL of the one that is needed says that it wants a PO token; nothing was asked. */
  | 'gated'
  /** There are tracks, and the text came empty although nothing announced it: a PO token is enforced. */
  | 'enforced'
  | 'timeout'
  /** Something came that could not be read. */
  | 'failure'
  /** Nothing came: the connection failed. */
  | 'unreached'
  /** Not playable on this client. */
  | 'unplayable';

export type NextStep =
  | { go: 'tracks' }
  /** Final: a fact about the video that every client would tell. */
  | { go: 'stop'; code: VideoFailureCode }
  | { go: 'next'; evidence: Evidence };

type PlayerKind = PlayerReading['kind'];

/**
 * What a player's answer leads to. UNPLAYABLE moves on because it was recorded on one client (WEB) for a video that
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
 * What follows from a player's answer, after what earlier clients showed. All clients asked would show captions, so a
 * playable video without any has none, also when an earlier client was refused. But whoever listed tracks has seen the
 * video play with captions: a later client that says otherwise tells about itself, and the text stays withheld.
 */
export function stepAfter(reading: PlayerReading, earlier: readonly Evidence[]): NextStep {
  const step = NEXT_STEPS[reading.kind];
  return step.go === 'stop' && hasSeenTracks(earlier) ? { go: 'next', evidence: 'unplayable' } : step;
}

/** Whether an earlier client listed the tracks that were asked for, and was not given their text. */
export function hasSeenTracks(evidence: readonly Evidence[]): boolean {
  return evidence.includes('gated') || evidence.includes('enforced');
}

/** Whether one of these is a refusal of the caller on one client, as against trouble or a fact about the video. */
export function isRefusal(kind: Evidence): boolean {
  return kind === 'refused' || kind === 'gated' || kind === 'enforced';
}

/** What an outgoing request without an answer tells about a client. */
export function evidenceOf(response: FailedResponse): Evidence {
  switch (response.kind) {
    case 'blocked':
      // The pages and 429 go by address; an empty answer is about this request.
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

/** What each is told as, from what must be told first to what may be told last. */
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

/** The honest answer when no client brought the text: a refusal anywhere is never told as a lack of captions. */
export function concludeFailure(evidence: readonly Evidence[]): VideoFailureCode {
  const worst = (Object.keys(FAILURE_CODES) as Evidence[]).find((kind) => evidence.includes(kind));
  return worst === undefined ? 'upstream_failure' : FAILURE_CODES[worst];
}

/** What a pass without a text says about the exit that it went through. */
export function verdictOf(evidence: readonly Evidence[], succeeded: boolean): AttemptVerdict {
  if (evidence.some((kind) => kind === 'refused' || kind === 'exit-refused')) return 'refused';
  if (evidence.includes('enforced')) return 'withheld';
  // The platform gates tracks of some videos for everybody: that neither proves the exit good nor bad.
  if (evidence.includes('gated')) return 'nothing';
  if (succeeded) return 'answered';
  return evidence.length > 0 && evidence.every((kind) => kind === 'unreached') ? 'unreached' : 'nothing';
}
