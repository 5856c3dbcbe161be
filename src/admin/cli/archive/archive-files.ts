import { z } from 'zod';
import { type Channel, VIDEO_KINDS } from '../../../domain/transcript.js';
import type { StoredEntry } from '../../../jobs/job.js';
import { inflate } from '../../../transcripts/cache/transcript-text.js';
import { formatTranscript } from '../../../transcripts/formats/transcript-formats.js';
import type { ArchiveDirectory } from './archive-directory.js';
import { ARCHIVE_FORMATS, archiveFileName } from './file-name.js';

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

/** What the files and the index need of the result of a video. */
const storedResult = z.object({
  videoId: z.string(),
  metadata: z.object({
    title: z.string().nullable(),
    url: z.string(),
    publishedAt: z.string().nullable(),
    publishedText: z.string().nullable(),
    durationSeconds: z.number().nullable(),
    viewCount: z.number().nullable(),
    thumbnailUrl: z.string().nullable(),
    kind: z.enum(VIDEO_KINDS).nullable(),
    captionTracks: z.array(z.object({ languageCode: z.string(), name: z.string(), generated: z.boolean() })).nullable(),
  }),
  transcript: z.record(z.string(), z.unknown()),
  error: z.object({ code: z.string(), message: z.string(), retryable: z.boolean() }).optional(),
});

/** Writes the results of a job to the directory of an archive. */
export class ArchiveFiles {
  /** The number of files that were written. */
  written = 0;
  /** The videos of the job, by their IDs, in the order of its results. */
  private readonly current = new Map<string, IndexedVideo>();
  /** The videos that an earlier job archived, and below which the uploads of this one end. */
  private readonly olderVideos: number;

  /** @param known the index before the job */
  constructor(
    private readonly directory: ArchiveDirectory,
    private readonly head: Pick<ArchiveIndex, 'format' | 'languages' | 'limit' | 'since'>,
    private readonly known: ArchiveIndex | undefined,
  ) {
    const { since } = head;
    const sinceAt = known && since !== null ? known.videos.findIndex(({ videoId }) => videoId === since) : -1;
    this.olderVideos = known && sinceAt >= 0 ? known.videos.length - sinceAt : 0;
  }

  /** All videos of the archive, the newest first. Those whose file was removed are left out. */
  get videos(): IndexedVideo[] {
    const { files } = this.directory;
    const others = this.known?.videos.filter(({ videoId }) => !this.current.has(videoId)) ?? [];
    const existing = others.filter(({ videoId, file, error }) => (file === null ? error !== null : files.has(videoId)));
    return [...this.current.values(), ...existing];
  }

  /** Creates the directory and the index. @throws ArchiveDirectoryError, and Error for the archive of another channel */
  async prepare(channel: Channel, out: string): Promise<void> {
    const { known } = this;
    if (known && known.channel.id !== channel.id)
      throw new Error(
        `${out} has the archive of ${known.channel.name} (${known.channel.id}). Choose another directory.`,
      );
    await this.directory.prepare();
    await this.saveIndex(channel, false);
  }

  /**
   * Writes the file of a video unless it exists.
   *
   * @param uploads the number of videos of the job
   * @throws ArchiveDirectoryError
   */
  async add({ position, text }: StoredEntry, uploads: number): Promise<void> {
    const json = await inflate(text);
    const { videoId, metadata, transcript, error = null } = storedResult.parse(JSON.parse(json.toString()));
    const { title, url, publishedAt } = metadata;
    const video: IndexedVideo = { videoId, title, url, publishedAt, file: null, error };
    this.current.set(videoId, video);
    if (error) return;
    const { format, languages } = this.head;
    const name = this.directory.files.get(videoId);
    video.file = name ?? archiveFileName(video, this.olderVideos + uploads - position + 1, format);
    if (name !== undefined) return;
    const stored = Buffer.from(JSON.stringify(transcript));
    const pieces =
      format === 'json' ? [json, '\n'] : formatTranscript(format, { videoId, metadata, transcript: stored }, languages);
    await this.directory.write(video.file, pieces);
    this.directory.files.set(videoId, video.file);
    this.written++;
  }

  /** @throws ArchiveDirectoryError */
  async saveIndex(channel: Channel, complete: boolean): Promise<void> {
    const index = { channel, ...this.head, complete, videos: this.videos };
    await this.directory.writeIndex(writeIndex(index, new Date()));
  }
}
