import type { VideoFailureCode } from '../../domain/transcript.js';
import type { FailedAnswer } from './answer.js';
import type { PlayerReading } from './player-response.js';

/** Why one client brought no text although another may. */
export type Evidence =
  /** The caller is refused on this client. */
  | 'refused'
  /** The caller is refused at this exit, whatever the client. */
  | 'exit-refused'
  /** There are tracks, and this client is not given their text: a PO token is needed, or the text came empty. */
  | 'withheld'
  | 'timeout'
  /** Something came that could not be read. */
  | 'failure'
  /** Nothing came: the connection failed. */
  | 'unreached'
  /** Not playable on this client. */
  | 'unplayable';

export type Step =
  | { go: 'tracks' }
  /** Final: a fact about the video that every client would tell. */
  | { go: 'stop'; code: VideoFailureCode }
  | { go: 'next'; evidence: Evidence };

type PlayerKind = PlayerReading['kind'];

/**
 * What a player's answer leads to. UNPLAYABLE moves on because it was recorded on one client (WEB) for a video that
 * VISIONOS and ANDROID play; the facts that stop are the same on each of the recorded clients.
 */
const STEPS: Readonly<Record<PlayerKind, Step>> = {
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
 * playable video without any has none; but not when an earlier client has listed some, whose text was withheld.
 */
export function stepAfter(reading: PlayerReading, earlier: readonly Evidence[]): Step {
  if (reading.kind === 'no-captions' && earlier.includes('withheld')) return { go: 'next', evidence: 'withheld' };
  return STEPS[reading.kind];
}

/** What an outgoing request without an answer tells about a client. */
export function evidenceOf(answer: FailedAnswer): Evidence {
  switch (answer.kind) {
    case 'blocked':
      // The pages and 429 go by address; an empty answer is about this request.
      return answer.reason === 'empty-body' ? 'refused' : 'exit-refused';
    case 'timeout':
      return 'timeout';
    case 'network':
      return 'unreached';
    case 'http-error':
    case 'unreadable':
      return 'failure';
  }
}

/** From what must be told first to what may be told last. */
const CONCLUSIONS: readonly (readonly [Evidence, VideoFailureCode])[] = [
  ['exit-refused', 'upstream_blocked'],
  ['refused', 'upstream_blocked'],
  ['withheld', 'upstream_blocked'],
  ['timeout', 'upstream_timeout'],
  ['failure', 'upstream_failure'],
  ['unreached', 'upstream_failure'],
  ['unplayable', 'video_unavailable'],
];

/** The honest answer when no client brought the text: a refusal anywhere is never told as a lack of captions. */
export function conclude(evidence: readonly Evidence[]): VideoFailureCode {
  return CONCLUSIONS.find(([kind]) => evidence.includes(kind))?.[1] ?? 'upstream_failure';
}
