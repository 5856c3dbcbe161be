import { z } from 'zod';
import { parseChannelReference } from '../domain/channel-reference.js';
import { ChannelNotFoundError, invalidField, PlaylistNotFoundError } from '../domain/errors.js';
import { parseVideoList } from '../domain/video-reference.js';
import { playlistId } from '../transcripts/sources/playlist-source.js';
import type { JobRequestDto } from './dto/job.dto.js';
import { ON_QUOTA, TEXT_FIELDS } from './job.js';

/** The request of a new job as a call, a tool or a command has it: what is absent has its default. */
export type WantedJob = { [Name in keyof Omit<JobRequestDto, 'videos'>]?: JobRequestDto[Name] | undefined } & {
  videos?: readonly string[] | null | undefined;
};

/** A new job: its request, and the IDs of its videos, which are stored as its list. */
export interface NewJob {
  request: JobRequestDto;
  videoIds: readonly string[] | undefined;
}

/** The request of a job as it is stored; what is absent has its default. That of a subscription is read as one too. */
export const requestSchema: z.ZodType<JobRequestDto> = z.object({
  channel: z.string().nullable().default(null),
  playlist: z.string().nullable().default(null),
  videos: z.number().nullable().default(null),
  ...TEXT_FIELDS,
  limit: z.number().nullable().default(null),
  since: z.string().nullable().default(null),
  onQuota: z.enum(ON_QUOTA).default('pause'),
});

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
  const request = requestSchema.parse({ ...wanted, videos: videoIds?.length });
  const { channel, playlist } = request;
  if (channel !== null) requireChannelReference(channel);
  if (playlist !== null && (UNSTORABLE.test(playlist) || !playlistId(playlist, 'playlist')))
    throw new PlaylistNotFoundError();
  return { request, videoIds };
}

/** @throws ChannelNotFoundError when a text is no reference to a channel, or cannot be stored */
export function requireChannelReference(text: string): void {
  if (UNSTORABLE.test(text) || !parseChannelReference(text)) throw new ChannelNotFoundError();
}

/** Refuses a request without one source, and what does not belong to its source. */
function refuseOtherSources(wanted: WantedJob): void {
  const [source, other] = SOURCES.filter((name) => (wanted[name] ?? null) !== null);
  if (!source) throw invalidField('channel', 'One of channel, playlist and videos is required.');
  if (other) throw invalidField(other, `${other} cannot be combined with ${source}: a job has one source.`);
  if (source !== 'channel' && (wanted.since ?? null) !== null)
    throw invalidField('since', `since belongs to channel, and cannot be combined with ${source}.`);
  if (source === 'videos' && (wanted.kinds ?? []).length > 0)
    throw invalidField('kinds', 'kinds belongs to channel and playlist, and cannot be combined with videos.');
}
