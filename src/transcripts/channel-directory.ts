import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import type { ChannelReference } from '../domain/channel-reference.js';
import { VIDEO_FAILURE_CODES, VIDEO_KINDS, type Channel, type Upload } from '../domain/transcript.js';
import { VideoPlatform, type ReadingContext, type UploadsList } from '../platform/video-platform.js';
import { ReadThroughCache } from './cache/read-through-cache.js';
import { TranscriptMetrics } from './transcript-metrics.js';
import { finite, flag, listOf, nullable, oneOf, record, text, type Reader } from './cache/keyed-codec.js';

const FORMAT = 'ct4';

const channelReader: Reader<Channel> = record<Channel>({ id: text, name: text, handle: nullable(text) });
const uploadsReader: Reader<UploadsList> = record<UploadsList>({
  uploads: listOf(
    record<Upload>({
      videoId: text,
      title: nullable(text),
      url: text,
      publishedAt: nullable(text),
      publishedText: nullable(text),
      durationSeconds: nullable(finite),
      viewCount: nullable(finite),
      thumbnailUrl: nullable(text),
      kind: nullable(oneOf(VIDEO_KINDS)),
      failure: nullable(oneOf(VIDEO_FAILURE_CODES)),
    }),
  ),
  complete: flag,
});

/** Channels and their uploads lists: asked of the platform once, shared by calls that come together, and remembered. */
@Injectable()
export class ChannelDirectory {
  private readonly ids: ReadThroughCache<string>;
  private readonly channels: ReadThroughCache<Channel>;
  private readonly lists: ReadThroughCache<UploadsList>;

  constructor(
    @Inject(CACHE_MANAGER) cache: Cache,
    private readonly platform: VideoPlatform,
    environment: Environment,
    { cache: lookups }: TranscriptMetrics,
  ) {
    this.ids = new ReadThroughCache(cache, environment.CHANNEL_TTL_SECONDS, text, lookups.channel_id);
    this.channels = new ReadThroughCache(cache, environment.CHANNEL_TTL_SECONDS, channelReader, lookups.channel);
    this.lists = new ReadThroughCache(cache, environment.UPLOADS_TTL_SECONDS, uploadsReader, lookups.uploads);
  }

  /** @throws ChannelNotFoundError | UpstreamError */
  resolve(reference: ChannelReference, context: ReadingContext): Promise<string> {
    if (reference.kind === 'id') return Promise.resolve(reference.id);
    // The platform tells handles apart without case; older names are left as they are.
    const name = reference.kind === 'handle' ? reference.handle.toLowerCase() : reference.name;
    return this.ids.get(`${FORMAT}:id:${reference.kind}:${name}`, context, (shared) =>
      this.platform.resolveChannel(reference, shared),
    );
  }

  /** @throws ChannelNotFoundError | UpstreamError */
  channel(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.channels.get(`${FORMAT}:channel:${channelId}`, context, (shared) =>
      this.platform.readChannel(channelId, shared),
    );
  }

  /**
   * The newest uploads, at most `count`.
   *
   * @throws ChannelNotFoundError | UpstreamError
   */
  async uploads(channelId: string, count: number, context: ReadingContext): Promise<Upload[]> {
    const list = await this.lists.get(
      `${FORMAT}:uploads:${channelId}`,
      context,
      (shared) => this.platform.listUploads(channelId, count, shared),
      ({ uploads, complete }) => complete || uploads.length >= count,
      String(count),
    );
    return list.uploads.slice(0, count);
  }
}
