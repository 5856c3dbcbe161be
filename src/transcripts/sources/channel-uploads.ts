import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { withCacheBudget } from '../../cache/cache-budget.js';
import { Environment } from '../../config/environment.js';
import { parseChannelReference } from '../../domain/channel-reference.js';
import { ChannelNotFoundError, UpstreamError } from '../../domain/errors.js';
import { VIDEO_FAILURE_CODES, type Channel, type Upload } from '../../domain/transcript.js';
import { VideoPlatform, type ReadingContext, type UploadsList } from '../../platform/video-platform.js';
import { CACHE_FORMAT } from '../cache/keyed-codec.js';
import { ReadThroughCache } from '../cache/read-through-cache.js';
import { METADATA_FIELDS } from '../cache/transcript-cache.js';
import { Call, CallEnded, type CallTimes } from '../call.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import type { VideoSource } from './video-list.js';

export const channelSchema: z.ZodType<Channel> = z.object({
  id: z.string(),
  name: z.string(),
  handle: z.string().nullable(),
});
export const uploadSchema: z.ZodType<Upload> = z.object({
  videoId: z.string(),
  url: z.string(),
  ...METADATA_FIELDS,
  publishedText: z.string().nullable(),
  failure: z.enum(VIDEO_FAILURE_CODES).nullable(),
});
const uploadsSchema: z.ZodType<UploadsList> = z.object({ uploads: z.array(uploadSchema), complete: z.boolean() });

export interface ChannelWithUploads {
  channel: Channel;
  uploads: Upload[];
}

/** Which of a channel's uploads a call is about. */
interface UploadsSelection {
  /** The number of uploads at most, the newest ones. */
  limit: number;
  /** The ID of a video: only the uploads that are newer; all when it is not among the newest `limit`. */
  since?: string | undefined;
}

/** The source of a channel's newest uploads. Reads from the platform are cached; concurrent calls share a request. */
@Injectable()
export class ChannelUploads {
  private readonly ids: ReadThroughCache<string>;
  private readonly channels: ReadThroughCache<Channel>;
  private readonly lists: ReadThroughCache<UploadsList>;

  constructor(
    @Inject(CACHE_MANAGER) cache: Cache,
    private readonly platform: VideoPlatform,
    private readonly environment: Environment,
    metrics: TranscriptMetrics,
  ) {
    const { CHANNEL_TTL_SECONDS, UPLOADS_TTL_SECONDS } = environment;
    this.ids = new ReadThroughCache('channel_id', CHANNEL_TTL_SECONDS, z.string(), cache, metrics);
    this.channels = new ReadThroughCache('channel', CHANNEL_TTL_SECONDS, channelSchema, cache, metrics);
    this.lists = new ReadThroughCache('uploads', UPLOADS_TTL_SECONDS, uploadsSchema, cache, metrics);
  }

  /** The newest uploads of a channel as the source of a call; the parameters are those of `list`. */
  source(text: string, selection: UploadsSelection): VideoSource {
    return async (context) => {
      const { channel, uploads } = await this.list(text, selection, context);
      return { header: { type: 'channel', channel }, resource: channel.id, uploads };
    };
  }

  /**
   * Lists the newest uploads of a channel within the deadline of a call of its own.
   *
   * @throws ChannelNotFoundError | UpstreamError
   */
  async listWithinDeadline(text: string, selection: UploadsSelection, times: CallTimes): Promise<ChannelWithUploads> {
    const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, times);
    try {
      return await withCacheBudget(() => this.list(text, selection, call));
    } catch (error) {
      throw error instanceof CallEnded ? new UpstreamError('upstream_timeout', error) : error;
    } finally {
      call.finish();
    }
  }

  /**
   * Lists the newest uploads of a channel.
   *
   * @param text the channel as the caller names it
   * @throws ChannelNotFoundError | UpstreamError, and the reason of `context.signal` when that is aborted first
   */
  private async list(
    text: string,
    { limit, since }: UploadsSelection,
    context: ReadingContext,
  ): Promise<ChannelWithUploads> {
    const channelId = await this.resolve(text, context);
    const [channel, list] = await Promise.allSettled([
      this.channel(channelId, context),
      this.lists.get(
        `${CACHE_FORMAT}:uploads:${channelId}`,
        context,
        (shared) => this.platform.listUploads(channelId, limit, shared),
        ({ uploads, complete }) => complete || uploads.length >= limit,
        String(limit),
      ),
    ]);
    // Other requests fail in arbitrary ways for a deleted channel: the reason of the channel itself is clear.
    if (channel.status === 'rejected') throw channel.reason;
    if (list.status === 'rejected') throw list.reason;
    const newest = list.value.uploads.slice(0, limit);
    const end = newest.findIndex(({ videoId }) => videoId === since);
    return { channel: channel.value, uploads: end === -1 ? newest : newest.slice(0, end) };
  }

  /**
   * Finds a channel.
   *
   * @param text the channel as the caller names it
   * @throws ChannelNotFoundError | UpstreamError, and the reason of `context.signal` when that is aborted first
   */
  async find(text: string, context: ReadingContext): Promise<Channel> {
    return this.channel(await this.resolve(text, context), context);
  }

  private async resolve(text: string, context: ReadingContext): Promise<string> {
    const reference = parseChannelReference(text);
    if (!reference) throw new ChannelNotFoundError();
    if (reference.kind === 'id') return reference.id;
    // Handles are case-insensitive on the platform; the older names are not.
    const name = reference.kind === 'handle' ? reference.handle.toLowerCase() : reference.name;
    return this.ids.get(`${CACHE_FORMAT}:id:${reference.kind}:${name}`, context, (shared) =>
      this.platform.resolveChannel(reference, shared),
    );
  }

  private channel(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.channels.get(`${CACHE_FORMAT}:channel:${channelId}`, context, (shared) =>
      this.platform.readChannel(channelId, shared),
    );
  }
}
