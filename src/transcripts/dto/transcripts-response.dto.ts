import { z } from 'zod';
import { count, dateTime } from '../../domain/schema-fields.js';
import {
  Channel,
  Playlist,
  Segment,
  TextTracks,
  Upload,
  VIDEO_FAILURE_CODES,
  VIDEO_FAILURES,
  VideoDetails,
} from '../../domain/transcript.js';

// The response is written as text (formats/json.ts), because cached transcripts are already JSON. The e2e tests validate responses
// against the document.

/** What a response states about `since`. */
export const sinceFound = z
  .boolean()
  .exactOptional()
  .describe(
    'Present exactly when the request has `since`. False when that video is not among the newest `limit` uploads, all of which are ' +
      'listed then: uploads between them and the video are missing.',
  );

/** What a response states of a list that the platform refuses at the moment. */
export const listedAt = dateTime(
  'Present only when YouTube refuses the list at the moment: the time at which the list in this response was read, less than a ' +
    'day ago. It lacks what was uploaded since then.',
)
  .meta({ example: '2026-10-31T19:42:05.000Z' })
  .exactOptional();

const Chapter = z
  .object({
    title: z.string().describe('The title in the description.'),
    start: z.int().min(0).describe('Start time in seconds.'),
  })
  .meta({ id: 'Chapter' });

const { shape: listed } = Upload;
const { shape: details } = VideoDetails;

export const VideoMetadata = z
  .object({
    title: listed.title,
    url: listed.url,
    publishedAt: listed.publishedAt,
    publishedText: listed.publishedText,
    durationSeconds: listed.durationSeconds,
    viewCount: listed.viewCount,
    thumbnailUrl: listed.thumbnailUrl,
    kind: listed.kind,
    captionTracks: details.captionTracks,
    channel: details.channel
      .exactOptional()
      .describe(
        'The channel of the video, in responses that have no `channel` of their own. Null when the video was not read.',
      ),
    description: details.description
      .exactOptional()
      .describe('With `include=description`. Null when there is none, or the video was not read.'),
    chapters: z
      .array(Chapter)
      .nullable()
      .exactOptional()
      .describe(
        'With `include=chapters`: the chapters of the description, by its time stamps: at least three, ascending, from 0:00. Null ' +
          'when the video was not read.',
      ),
    tags: details.tags.exactOptional().describe('With `include=tags`. Null when the video was not read.'),
  })
  .meta({ id: 'VideoMetadata' });
export type VideoMetadata = z.infer<typeof VideoMetadata>;

export const EntryError = z
  .object({
    code: z
      .enum(VIDEO_FAILURE_CODES)
      .describe(
        `Why the entry has no transcript. ${VIDEO_FAILURE_CODES.map(
          (code) => `\`${code}\`: ${VIDEO_FAILURES[code].message}`,
        ).join(' ')}`,
      ),
    message: z.string().describe('A message for developers. Its wording may change; match on `code` instead.'),
    retryable: z.boolean().describe('Whether a later request can succeed for this video.'),
    retryAfterSeconds: z
      .int()
      .min(1)
      .exactOptional()
      .describe('Seconds after which a retry can succeed. Only with some retryable codes, when the service knows it.'),
  })
  .meta({ id: 'VideoError' });
export type EntryError = z.infer<typeof EntryError>;

export const EntryDto = z
  .object({
    videoId: listed.videoId,
    ok: z.boolean().describe('Whether the entry has a transcript.'),
    metadata: VideoMetadata.describe('The metadata of the video. A value that YouTube does not give is null.'),
    transcript: z
      .record(z.string(), z.array(Segment))
      .describe('Segments ordered by `start`, by language code. Empty when `ok` is false.'),
    cached: z
      .boolean()
      .describe('True when the transcript was not fetched for this request, and therefore not charged.'),
    error: EntryError.exactOptional().describe('Present exactly when `ok` is false.'),
    tracks: TextTracks.describe(
      'The caption track that each text is from, by language code. Empty when `ok` is false.',
    ),
  })
  .meta({ id: 'VideoTranscript' });
export type EntryDto = z.infer<typeof EntryDto>;

export const Summary = z
  .object({
    total: count('The number of entries in `results`.'),
    succeeded: count('Entries with a transcript: `cached` + `fetched`.'),
    failed: count('Entries without a transcript: `total` - `succeeded`.'),
    cached: count('Transcripts that were not fetched for this request. They are free.'),
    fetched: count('Transcripts fetched for this request: the number charged to the monthly quota.'),
    sinceFound,
  })
  .meta({ id: 'Summary' });
export type Summary = z.infer<typeof Summary>;

const summary = Summary.describe('Totals over `results`.');

export const TranscriptsDto = z
  .object({
    channel: Channel.describe('The channel.'),
    listedAt,
    results: z.array(EntryDto).describe('The most recent uploads, newest first, each with its own status.'),
    summary,
  })
  .meta({ id: 'ChannelTranscripts' });
export type TranscriptsDto = z.infer<typeof TranscriptsDto>;

export const PlaylistTranscriptsDto = z
  .object({
    playlist: Playlist.describe('The playlist.'),
    listedAt,
    results: z.array(EntryDto).describe("The first videos, in the playlist's order, each with its own status."),
    summary,
  })
  .meta({ id: 'PlaylistTranscripts' });
export type PlaylistTranscriptsDto = z.infer<typeof PlaylistTranscriptsDto>;

export const VideoTranscriptsDto = z
  .object({
    results: z.array(EntryDto).describe('The videos in the order of the request, each with its own status.'),
    summary,
  })
  .meta({ id: 'VideosTranscripts' });
export type VideoTranscriptsDto = z.infer<typeof VideoTranscriptsDto>;
