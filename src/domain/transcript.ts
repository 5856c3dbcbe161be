/** A channel as the platform names it. `handle` is null for the rare channel that has none. */
export interface Channel {
  id: string;
  name: string;
  handle: string | null;
}

/** `live` is running now, `upcoming` is announced; a past live stream is a `video`. */
export const VIDEO_KINDS = ['video', 'short', 'live', 'upcoming'] as const;
export type VideoKind = (typeof VIDEO_KINDS)[number];

/** A caption track that the platform offers; `languageCode` is the platform's BCP 47 code. */
export interface CaptionTrack {
  languageCode: string;
  name: string;
  /** Made by speech recognition. */
  generated: boolean;
}

/** One line of a transcript; `start` and `duration` are seconds. `duration` is time on screen, so lines can overlap. */
export interface Segment {
  text: string;
  start: number;
  duration: number;
}

/** Segments by language code, in the order of the caller's preference. */
export type Transcript = ReadonlyMap<string, readonly Segment[]>;

/** Why one video of a channel has no transcript in an answer, and whether asking again can help. */
export const VIDEO_FAILURES = {
  transcript_unavailable: { retryable: false, message: 'This video has no captions.' },
  language_unavailable: { retryable: false, message: 'This video has no captions in the languages asked for.' },
  video_unavailable: { retryable: false, message: 'This video was removed or is not available.' },
  video_private: { retryable: false, message: 'This video is private.' },
  video_members_only: { retryable: false, message: "This video is for the channel's members only." },
  video_age_restricted: {
    retryable: false,
    message: 'This video is age-restricted and cannot be read without signing in.',
  },
  video_not_live_yet: { retryable: true, message: 'This video is announced and has not started yet.' },
  video_live: { retryable: true, message: 'This video is live at the moment; captions come after it has ended.' },
  upstream_blocked: { retryable: true, message: 'The platform refused to answer this service. Try again later.' },
  upstream_timeout: { retryable: true, message: 'The transcript did not arrive before the deadline of this call.' },
  upstream_failure: {
    retryable: true,
    message: 'The platform answered in a way that could not be read. Try again later.',
  },
} as const satisfies Record<string, { retryable: boolean; message: string }>;

export type VideoFailureCode = keyof typeof VIDEO_FAILURES;

export const VIDEO_FAILURE_CODES = Object.keys(VIDEO_FAILURES) as VideoFailureCode[];

export interface VideoFailure {
  code: VideoFailureCode;
  /** A public sentence, when there is more to say than the code's own message, e.g. which languages exist. */
  message?: string;
}

/** One upload as a channel's list shows it. What the platform did not give is null, never guessed. */
export interface Upload {
  videoId: string;
  title: string | null;
  url: string;
  /** Exact, ISO 8601 in UTC, or null. */
  publishedAt: string | null;
  /** What the platform shows, e.g. "4 months ago". */
  publishedText: string | null;
  durationSeconds: number | null;
  viewCount: number | null;
  thumbnailUrl: string | null;
  kind: VideoKind | null;
  /** Set when the list already tells that there can be no transcript, so that nothing is spent on asking. */
  failure: VideoFailureCode | null;
}

/** What reading the video itself adds to its line in the list; null where it told nothing. */
export interface VideoDetails {
  publishedAt: string | null;
  durationSeconds: number | null;
  viewCount: number | null;
  kind: VideoKind | null;
  /** Null when the tracks could not be seen; empty when the platform says that there are none. */
  captionTracks: readonly CaptionTrack[] | null;
}

export const NO_DETAILS: VideoDetails = {
  publishedAt: null,
  durationSeconds: null,
  viewCount: null,
  kind: null,
  captionTracks: null,
};

/** The end of reading one video: its transcript, or why there is none. */
export type VideoOutcome =
  | { ok: true; details: VideoDetails; transcript: Transcript }
  | { ok: false; details: VideoDetails; failure: VideoFailure };
