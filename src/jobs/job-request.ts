import { parseChannelReference } from '../domain/references/channel-reference.js';
import { ChannelNotFoundError, invalidField, PlaylistNotFoundError } from '../domain/errors.js';
import { parseVideoList } from '../domain/references/video-reference.js';
import { fromStored, storedForm, toStored, type Wanted } from '../http/routes/validation.js';
import { playlistId } from '../transcripts/sources/playlist-source.js';
import type { JobRequestDto } from './dto/job.dto.js';
import { type CreateJobDto, JobFields } from './dto/jobs-request.dto.js';

/** The request of a new job as a call, a tool or a command has it. */
export type WantedJob = Wanted<CreateJobDto>;

/** A new job: its request, and the IDs of its videos, which are stored as its list. */
export interface NewJob {
  request: JobRequestDto;
  videoIds: readonly string[] | undefined;
}

/** The request of a job as its row has it, which does not have the IDs of its videos. */
export function storedJob(request: JobRequestDto): object {
  return { ...toStored(JobFields, request), videos: request.videos };
}

/** Reads the request of a row; that of a subscription is read as that of a job too. @throws Error */
export function readStoredJob(row: string): JobRequestDto {
  const stored = JSON.parse(row) as { videos?: number | null };
  return { ...fromStored(JobFields, stored), videos: stored.videos ?? null };
}

/** What makes a request of a row another one: also its videos. */
export function comparedJob(row: string): object {
  const { videosHash } = JSON.parse(row) as { videosHash?: string };
  return { ...readStoredJob(row), videosHash };
}

const SOURCES = ['channel', 'playlist', 'videos'] as const;

/** PostgreSQL stores no text with these, and no reference to a channel or a playlist needs them. */
const UNSTORABLE = /[\p{Cc}\p{Cs}]/u;

/**
 * The request of a new job with every field, and its videos as IDs, each once.
 *
 * @throws InvalidRequestError | ChannelNotFoundError | PlaylistNotFoundError when the text is no reference to one
 */
export function newJob(wanted: WantedJob): NewJob {
  refuseOtherSources(wanted);
  const videoIds = wanted.videos ? [...new Set(parseVideoList(wanted.videos))] : undefined;
  const request = { ...storedForm(JobFields, wanted), videos: videoIds?.length ?? null };
  const { channel, playlist } = request;
  if (channel !== null) requireChannelReference(channel);
  if (playlist !== null) requirePlaylistId(playlist);
  return { request, videoIds };
}

/**
 * What a subscription follows: the ID of its channel or playlist; the name of a channel whose ID is not known.
 *
 * @throws InvalidRequestError | ChannelNotFoundError | PlaylistNotFoundError when the text is no reference to one
 */
export function sourceOf({ channel, playlist }: { channel: string | null; playlist: string | null }): string {
  if (channel !== null && playlist !== null)
    throw invalidField('playlist', 'playlist cannot be combined with channel: a subscription has one of them.');
  if (playlist !== null) return requirePlaylistId(playlist);
  if (channel === null) throw invalidField('channel', 'One of channel and playlist is required.');
  requireChannelReference(channel);
  const reference = parseChannelReference(channel);
  // A handle can look like the ID of a playlist, but for its @.
  if (reference?.kind === 'handle') return `@${reference.handle}`;
  return reference?.kind === 'id' ? reference.id : channel;
}

/** @throws InvalidRequestError | PlaylistNotFoundError when a text is no reference to a playlist, or cannot be stored */
function requirePlaylistId(text: string): string {
  if (UNSTORABLE.test(text)) throw new PlaylistNotFoundError();
  return playlistId(text, 'playlist');
}

/** @throws ChannelNotFoundError when a text is no reference to a channel, or cannot be stored */
function requireChannelReference(text: string): void {
  if (UNSTORABLE.test(text) || !parseChannelReference(text)) throw new ChannelNotFoundError();
}

/** Refuses a request without one source, and what does not belong to its source. */
function refuseOtherSources(wanted: WantedJob): void {
  const [source, other] = SOURCES.filter((name) => (wanted[name] ?? null) !== null);
  if (!source) throw invalidField('channel', 'One of channel, playlist and videos is required.');
  if (other) throw invalidField(other, `${other} cannot be combined with ${source}: a job has one source.`);
  if (source !== 'channel' && (wanted.since ?? null) !== null)
    throw invalidField('since', `since belongs to channel, and cannot be combined with ${source}.`);
  const filter =
    (wanted.kinds ?? []).length > 0 ? 'kinds' : (wanted.publishedAfter ?? null) !== null ? 'publishedAfter' : null;
  if (source === 'videos' && filter)
    throw invalidField(filter, `${filter} belongs to channel and playlist, and cannot be combined with videos.`);
}
