import { z } from 'zod';
import {
  mayGetCaptions,
  VIDEO_FAILURE_CODES,
  type Channel,
  type Upload,
  type VideoFailureCode,
} from '../../../domain/transcript.js';
import { fromJson } from '../../../transcripts/cache/keyed-codec.js';
import { channelSchema } from '../../../transcripts/sources/channel-uploads.js';
import { ARCHIVE_FORMATS, type ArchiveFormat } from './file-name.js';

/** One video of an archive: its file, or why it has none. Both are null until it is fetched. */
export interface IndexedVideo extends Pick<Upload, 'videoId' | 'title' | 'url' | 'publishedAt'> {
  file: string | null;
  error: { code: VideoFailureCode; message: string; retryable: boolean } | null;
}

/** The document `index.json` of an archive, in the order of the channel's uploads. */
export interface ArchiveIndex {
  channel: Channel;
  format: ArchiveFormat;
  languages: string[];
  videos: IndexedVideo[];
}

export interface ArchiveSummary {
  total: number;
  succeeded: number;
  failed: number;
  /** Not fetched yet. */
  pending: number;
}

const indexSchema: z.ZodType<ArchiveIndex> = z.object({
  channel: channelSchema,
  format: z.enum(ARCHIVE_FORMATS),
  languages: z.array(z.string()),
  videos: z.array(
    z.object({
      videoId: z.string(),
      title: z.string().nullable(),
      url: z.string(),
      publishedAt: z.string().nullable(),
      file: z.string().nullable(),
      error: z.object({ code: z.enum(VIDEO_FAILURE_CODES), message: z.string(), retryable: z.boolean() }).nullable(),
    }),
  ),
});

/** The index in a file; undefined when the file is not an index. */
export function readIndex(bytes: Buffer): ArchiveIndex | undefined {
  return fromJson(bytes, indexSchema);
}

/** The index as JSON, with its counts. */
export function writeIndex({ channel, format, languages, videos }: ArchiveIndex, updatedAt: Date): string {
  const index = { channel, format, languages, updatedAt: updatedAt.toISOString(), summary: summarize(videos), videos };
  return `${JSON.stringify(index, null, 2)}\n`;
}

export function summarize(videos: readonly IndexedVideo[]): ArchiveSummary {
  const succeeded = videos.filter(({ file }) => file !== null).length;
  const failed = videos.filter(({ file, error }) => file === null && error !== null).length;
  return { total: videos.length, succeeded, failed, pending: videos.length - succeeded - failed };
}

/** Whether a later run can fetch a video that has no file. */
export function isWorthRetrying({ error, publishedAt }: IndexedVideo, now: Date): boolean {
  if (error === null || error.retryable) return true;
  const lacksCaptions = error.code === 'transcript_unavailable' || error.code === 'language_unavailable';
  return lacksCaptions && mayGetCaptions(publishedAt, now.getTime());
}
