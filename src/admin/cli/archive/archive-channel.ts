import { UpstreamError } from '../../../domain/errors.js';
import type { Channel, Upload } from '../../../domain/transcript.js';
import { CommandStopped } from '../output.js';
import type { LocalTranscripts } from '../print-transcripts.js';
import { ArchiveDirectory } from './archive-directory.js';
import {
  isWorthRetrying,
  readIndex,
  summarize,
  type ArchiveIndex,
  type ArchiveSummary,
  type IndexedVideo,
} from './archive-index.js';
import { ArchiveRun, type ListedVideo } from './archive-run.js';
import type { ArchiveFormat } from './file-name.js';
import type { ProgressReport } from './progress.js';
import { UploadsList } from './uploads-list.js';

export interface ArchiveRequest {
  /** The channel as the caller names it. */
  reference: string;
  /** The path of the directory. */
  out: string;
  format: ArchiveFormat;
  languages: readonly string[];
  /** The number of uploads at most, the newest ones; undefined for all. */
  limit: number | undefined;
}

/** The state of an archive after a run. */
export interface ArchiveResult {
  channel: Channel;
  directory: string;
  /** The number of files that the run has written. */
  written: number;
  summary: ArchiveSummary;
  videos: readonly IndexedVideo[];
}

/**
 * Writes a file for each video of a channel that the directory lacks, and the index.
 *
 * @param stop aborts with the exit code of the command as its reason
 * @throws CommandStopped | ArchiveDirectoryError | ChannelNotFoundError | UpstreamError, and Error when the directory has
 * something else than this archive
 */
export async function archiveChannel(
  request: ArchiveRequest,
  { platform, transcripts, deadlineSeconds }: LocalTranscripts,
  stop: AbortSignal,
  progress: ProgressReport,
): Promise<ArchiveResult> {
  const list = new UploadsList(platform, deadlineSeconds, stop);
  let videos: IndexedVideo[] = [];
  try {
    // Before the directory is created, so that a misspelled handle leaves none.
    const channel = await list.channel(request.reference);
    const directory = await ArchiveDirectory.open(request.out, request.format);
    const known = knownIndex(directory, request);
    refuseOtherChannel(channel, known, request);
    videos = known?.videos ?? [];
    const uploads = await list.uploads(channel.id, request.limit, (count) => progress.listing(count));
    const listed = placeInIndex(uploads, directory.files, known);
    const missing = listed.filter(({ indexed }) => indexed.file === null && isWorthRetrying(indexed, new Date()));
    videos = [...listed.map(({ indexed }) => indexed), ...unlisted(listed, directory.files, known)];
    const { format, languages } = request;
    const run = new ArchiveRun({ channel, format, languages, videos, missing }, directory, transcripts, stop, progress);
    await run.fetch();
    stop.throwIfAborted();
    return { channel, directory: request.out, written: run.written, summary: summarize(videos), videos };
  } catch (error) {
    progress.end();
    const { succeeded, total } = summarize(videos);
    const state = total === 0 ? '' : ` ${succeeded} of ${total} videos have a file.`;
    if (stop.aborted)
      throw new CommandStopped(`Stopped.${state} Run the same command again to continue.`, Number(stop.reason));
    if (error instanceof UpstreamError && error.code === 'upstream_blocked') throw blocked(error, state);
    throw error;
  } finally {
    progress.end();
  }
}

/** @throws Error when the directory has something else than this archive */
function knownIndex(directory: ArchiveDirectory, { out, format, languages }: ArchiveRequest): ArchiveIndex | undefined {
  if (directory.index === undefined) return undefined;
  const index = readIndex(directory.index);
  if (!index) throw new Error(`${directory.indexPath} is not the index of an archive. Choose another directory.`);
  if (index.format !== format)
    throw new Error(
      `${out} has files in the format ${index.format}. Use --format ${index.format} or another directory.`,
    );
  if (index.languages.join() !== languages.join()) {
    const given = index.languages.length === 0 ? 'no --languages' : `--languages ${index.languages.join()}`;
    throw new Error(`${out} has other languages. Use ${given} or another directory.`);
  }
  return index;
}

/** @throws Error when the directory has the archive of another channel */
function refuseOtherChannel(channel: Channel, known: ArchiveIndex | undefined, { out }: ArchiveRequest): void {
  if (!known || known.channel.id === channel.id) return;
  throw new Error(`${out} has the archive of ${known.channel.name} (${known.channel.id}). Choose another directory.`);
}

/** Each upload with what the directory and its index have of it. */
function placeInIndex(
  uploads: readonly Upload[],
  files: ReadonlyMap<string, string>,
  known: ArchiveIndex | undefined,
): ListedVideo[] {
  const before = new Map(known?.videos.map((video) => [video.videoId, video]));
  return uploads.map((upload, index) => {
    const { videoId, title, url, publishedAt } = upload;
    const previous = before.get(videoId);
    const file = files.get(videoId) ?? null;
    const indexed: IndexedVideo = {
      videoId,
      title: title ?? previous?.title ?? null,
      url,
      publishedAt: publishedAt ?? previous?.publishedAt ?? null,
      file,
      error: file === null ? (previous?.error ?? null) : null,
    };
    return { upload, indexed, position: uploads.length - index };
  });
}

/** What the index has of videos that the channel no longer lists, or that are beyond the limit. Removed files are left out. */
function unlisted(
  listed: readonly ListedVideo[],
  files: ReadonlyMap<string, string>,
  known: ArchiveIndex | undefined,
): IndexedVideo[] {
  const ids = new Set(listed.map(({ upload }) => upload.videoId));
  const others = known?.videos.filter(({ videoId }) => !ids.has(videoId)) ?? [];
  return others.filter(({ videoId, file, error }) => (file === null ? error !== null : files.has(videoId)));
}

function blocked({ retryAfterSeconds = 0 }: UpstreamError, state: string): Error {
  const minutes = Math.ceil(retryAfterSeconds / 60);
  const when = minutes > 0 ? `in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}` : 'later';
  return new Error(
    `YouTube blocks the requests from this address.${state} Run the same command again ${when}, or through another ` +
      'address with UPSTREAM_PROXY_URL; files that exist are not fetched again.',
  );
}
