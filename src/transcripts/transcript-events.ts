import {
  NO_DETAILS,
  VIDEO_FAILURES,
  type Upload,
  type VideoDetails,
  type VideoFailure,
  type VideoFailureCode,
} from '../domain/transcript.js';
import type { SentText } from './cache/transcript-text.js';
import type { ListHeader } from './sources/video-list.js';

/** The metadata of a video in a response; null where the platform gave no value. */
export type VideoMetadata = Omit<Upload, 'videoId' | 'failure'> & Pick<VideoDetails, 'captionTracks'>;

export interface EntryError {
  code: VideoFailureCode;
  message: string;
  retryable: boolean;
  /** Only when the service knows when a retry can succeed. */
  retryAfterSeconds?: number;
}

export interface SucceededEntry {
  videoId: string;
  ok: true;
  metadata: VideoMetadata;
  transcript: SentText;
  cached: boolean;
}

/** One video of a response. Its transcript is already serialized. */
export type Entry = SucceededEntry | { videoId: string; ok: false; metadata: VideoMetadata; error: EntryError };

/** `total = succeeded + failed`, `succeeded = cached + fetched`, and the call is charged `fetched`. */
export interface Summary {
  total: number;
  succeeded: number;
  failed: number;
  cached: number;
  fetched: number;
}

/** The events of a response, in this order: the header of the list, a result for each video, the summary. */
export type TranscriptsEvent = ListHeader | { type: 'result'; entry: Entry } | { type: 'summary'; summary: Summary };

export function succeededEntry(upload: Upload, details: VideoDetails, transcript: SentText, cached: boolean): Entry {
  return { videoId: upload.videoId, ok: true, metadata: metadata(upload, details), transcript, cached };
}

export function failedEntry(upload: Upload, details: VideoDetails, failure: VideoFailure): Entry {
  return { videoId: upload.videoId, ok: false, metadata: metadata(upload, details), error: entryError(failure) };
}

export function entryError(failure: VideoFailure): EntryError {
  const { message, retryable } = VIDEO_FAILURES[failure.code];
  const { code, retryAfterSeconds } = failure;
  return {
    ...{ code, message: failure.message ?? message, retryable },
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/** The metadata of a video that was listed and not read. */
export function listedMetadata(upload: Upload): VideoMetadata {
  return compose(upload, NO_DETAILS);
}

/** The metadata composed last for an upload: while both are cached, calls share one object, and so its JSON. */
const composed = new WeakMap<Upload, { details: VideoDetails; metadata: VideoMetadata }>();

function metadata(upload: Upload, details: VideoDetails): VideoMetadata {
  const known = composed.get(upload);
  if (known?.details === details) return known.metadata;
  const metadata = compose(upload, details);
  composed.set(upload, { details, metadata });
  return metadata;
}

/** The video's own page is exact where the list rounds, so it takes precedence. The list's title and thumbnail stay. */
function compose(upload: Upload, details: VideoDetails): VideoMetadata {
  return {
    title: upload.title ?? details.title,
    url: upload.url,
    publishedAt: details.publishedAt ?? upload.publishedAt,
    publishedText: upload.publishedText,
    durationSeconds: details.durationSeconds ?? upload.durationSeconds,
    viewCount: details.viewCount ?? upload.viewCount,
    thumbnailUrl: upload.thumbnailUrl ?? details.thumbnailUrl,
    kind: details.kind ?? upload.kind,
    captionTracks: details.captionTracks,
  };
}

export function emptySummary(): Summary {
  return { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0 };
}

export function count(summary: Summary, entry: Entry): void {
  summary.total++;
  if (!entry.ok) {
    summary.failed++;
    return;
  }
  summary.succeeded++;
  if (entry.cached) summary.cached++;
  else summary.fetched++;
}
