import { z } from 'zod';
import { ARCHIVE_FORMATS } from './file-name.js';

const video = z.object({
  videoId: z.string(),
  title: z.string().nullable(),
  url: z.string(),
  publishedAt: z.string().nullable(),
  /** The name of its file; null when it has none. */
  file: z.string().nullable(),
  /** Why it has no file. */
  error: z.object({ code: z.string(), message: z.string(), retryable: z.boolean() }).nullable(),
});

/** One video of an archive: its file, or why it has none. */
export type IndexedVideo = z.infer<typeof video>;

const index = z.object({
  channel: z.object({ id: z.string(), name: z.string(), handle: z.string().nullable() }),
  format: z.enum(ARCHIVE_FORMATS),
  languages: z.array(z.string()),
  limit: z.number().int().nullable(),
  /** The newest video that the archive had when its last job began: the job takes the uploads above it. */
  since: z.string().nullable(),
  /** Whether the last job was completed. */
  complete: z.boolean(),
  videos: z.array(video),
});

/** The document `index.json` of an archive. Its videos are in the order of the channel's uploads. */
export type ArchiveIndex = z.infer<typeof index>;

/** The index in a file; undefined when the file is not an index. */
export function readIndex(bytes: Buffer): ArchiveIndex | undefined {
  try {
    return index.safeParse(JSON.parse(bytes.toString())).data;
  } catch {
    return undefined;
  }
}

/** The index as JSON, with its counts. */
export function writeIndex({ videos, ...head }: ArchiveIndex, updatedAt: Date): string {
  const { succeeded, failed } = summarize(videos);
  const summary = { total: videos.length, succeeded, failed };
  return `${JSON.stringify({ ...head, updatedAt: updatedAt.toISOString(), summary, videos }, null, 2)}\n`;
}

export function summarize(videos: readonly IndexedVideo[]): { succeeded: number; failed: number } {
  const succeeded = videos.filter(({ file }) => file !== null).length;
  return { succeeded, failed: videos.length - succeeded };
}
