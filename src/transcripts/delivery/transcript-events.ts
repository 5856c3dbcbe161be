import {
  type Includable,
  NO_DETAILS,
  type TextTracks,
  type Upload,
  VIDEO_FAILURES,
  type VideoDetails,
  type VideoFailure,
  type VideoOutcome,
} from '../../domain/transcript.js';
import type { TranscriptText } from '../cache/transcript-text.js';
import type { EntryError, Summary, VideoMetadata } from '../dto/transcripts-response.dto.js';
import { chaptersOf } from '../formats/chapters.js';
import type { ListHeader } from '../sources/video-list.js';

/** Whether the service knows that the platform blocks it, and until when. Without `retryAfterSeconds` only this video was refused. */
export function statesBlock({ code, retryAfterSeconds }: Pick<EntryError, 'code' | 'retryAfterSeconds'>): boolean {
  return code === 'upstream_blocked' && retryAfterSeconds !== undefined;
}

export interface SucceededEntry<Text = TranscriptText> {
  videoId: string;
  ok: true;
  metadata: VideoMetadata;
  transcript: Text;
  cached: boolean;
  tracks: TextTracks;
}

export interface FailedEntry {
  videoId: string;
  ok: false;
  metadata: VideoMetadata;
  error: EntryError;
}

/** One video of a response. Its transcript is already serialized and deflated, or in another form. */
export type Entry<Text = TranscriptText> = SucceededEntry<Text> | FailedEntry;

/** The events of a response, in this order: the header of the list, a result for each video, the summary. */
export type TranscriptsEvent = ListHeader | { type: 'result'; entry: Entry } | { type: 'summary'; summary: Summary };

/** What the metadata of a response has beside that of every response. */
export interface MetadataForm {
  /** The response has no channel at its top. */
  withChannel?: boolean;
  include?: readonly Includable[] | undefined;
}

/** @param cached whether the transcript was not fetched for the call, and so is free */
export function entryOf(
  upload: Upload,
  outcome: VideoOutcome<TranscriptText>,
  cached: boolean,
  form?: MetadataForm,
): Entry {
  const { videoId } = upload;
  const metadata = metadataOf(upload, outcome.details, form);
  return outcome.ok
    ? { videoId, ok: true, metadata, transcript: outcome.transcript, cached, tracks: outcome.tracks }
    : { videoId, ok: false, metadata, error: entryError(outcome.failure) };
}

export function failedEntry(upload: Upload, failure: VideoFailure, form?: MetadataForm): Entry {
  return entryOf(upload, { ok: false, details: NO_DETAILS, failure }, false, form);
}

export function entryError(failure: VideoFailure): EntryError {
  const { message, retryable } = VIDEO_FAILURES[failure.code];
  const { code, retryAfterSeconds } = failure;
  return {
    ...{ code, message: failure.message ?? message, retryable },
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/**
 * The video's own page is exact where the list rounds, and has the title in the video's language where lists translate it, so
 * it takes precedence. The list's thumbnail stays.
 *
 * @param details of the video itself, if it was read
 */
export function metadataOf(
  upload: Upload,
  details: VideoDetails = NO_DETAILS,
  { withChannel = false, include = [] }: MetadataForm = {},
): VideoMetadata {
  const { description } = details;
  const durationSeconds = details.durationSeconds ?? upload.durationSeconds;
  return {
    title: details.title ?? upload.title,
    url: upload.url,
    publishedAt: details.publishedAt ?? upload.publishedAt,
    publishedText: upload.publishedText,
    durationSeconds,
    viewCount: details.viewCount ?? upload.viewCount,
    thumbnailUrl: upload.thumbnailUrl ?? details.thumbnailUrl,
    kind: details.kind ?? upload.kind,
    captionTracks: details.captionTracks,
    ...(withChannel && { channel: details.channel }),
    ...(include.includes('description') && { description: description === '' ? null : description }),
    ...(include.includes('chapters') && {
      chapters: description === null ? null : chaptersOf(description, durationSeconds),
    }),
    ...(include.includes('tags') && { tags: details.tags }),
  };
}

export function emptySummary(): Summary {
  return { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0 };
}

export function addToSummary(summary: Summary, entry: Entry): void {
  summary.total++;
  if (entry.ok) {
    summary.succeeded++;
    summary[entry.cached ? 'cached' : 'fetched']++;
  } else summary.failed++;
}
