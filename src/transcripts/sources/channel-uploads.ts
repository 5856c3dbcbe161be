import { CACHE_MANAGER, type Cache } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { Environment } from '../../config/environment.js';
import { type ChannelReference, parseChannelReference } from '../../domain/references/channel-reference.js';
import { ChannelNotFoundError } from '../../domain/errors.js';
import { Channel, Upload } from '../../domain/transcript.js';
import { VideoPlatform, type DescribedPage, type ReadingContext } from '../../platform/video-platform.js';
import { CACHE_FORMAT } from '../cache/keyed-codec.js';
import { ReadThroughCache } from '../cache/read-through-cache.js';
import type { RequestContext } from '../../http/server/request-context.js';
import { readWithinDeadline } from '../call.js';
import { TranscriptMetrics } from '../transcript-metrics.js';
import {
  type CountedList,
  type Dated,
  hasNews,
  isYoungerThan,
  LAST_READ_SECONDS,
  lastList,
  listFrom,
  reaches,
  readCounted,
  withKnown,
  readSelection,
  type Selected,
  type Selection,
} from './counted-list.js';
import type { VideoSource } from './video-list.js';

export const countedListFields = { uploads: z.array(Upload), next: z.string().nullable(), complete: z.boolean() };
interface DatedList extends CountedList, Dated, Pick<DescribedPage, 'settled'> {
  /** As for `ListHeader`; not stored. */
  listedAt?: string;
}
const datedListSchema: z.ZodType<DatedList> = z.object({
  ...countedListFields,
  ...{ settled: z.boolean(), readAtMs: z.number() },
});

const datedTextSchema = z.object({ value: z.string(), readAtMs: z.number() });
const datedChannelSchema = z.object({ value: Channel, readAtMs: z.number() });

/** How long a channel that was not found is not looked for again: a caller that repeats it costs the platform nothing. */
const UNKNOWN_MS = 60_000;
const UNKNOWN_CHANNELS_MAX = 10_000;

export interface ChannelWithUploads extends Selected {
  channel: Channel;
  /** As for `ListHeader`. */
  listedAt: string | undefined;
}

/** The source of a channel's newest uploads. Reads from the platform are cached; concurrent calls share a request. */
@Injectable()
export class ChannelUploads {
  private readonly ids: ReadThroughCache<Dated & { value: string }>;
  private readonly channels: ReadThroughCache<Dated & { value: Channel }>;
  private readonly lists: ReadThroughCache<DatedList>;
  /** Channels that were not found a moment ago. */
  private readonly unknown = new LRUCache<string, true>({ max: UNKNOWN_CHANNELS_MAX, ttl: UNKNOWN_MS });

  constructor(
    @Inject(CACHE_MANAGER) cache: Cache,
    private readonly platform: VideoPlatform,
    private readonly environment: Environment,
    metrics: TranscriptMetrics,
  ) {
    const { CHANNEL_TTL_SECONDS, UPLOADS_TTL_SECONDS } = environment;
    const channelSeconds = Math.max(CHANNEL_TTL_SECONDS, LAST_READ_SECONDS);
    this.ids = new ReadThroughCache('channel_id', channelSeconds, datedTextSchema, cache, metrics);
    this.channels = new ReadThroughCache('channel', channelSeconds, datedChannelSchema, cache, metrics);
    // For longer than a list serves calls: the next read takes over what it states, and it serves while the platform refuses.
    const listSeconds = Math.max(channelSeconds, UPLOADS_TTL_SECONDS);
    this.lists = new ReadThroughCache('uploads', listSeconds, datedListSchema, cache, metrics);
  }

  /** The newest uploads of a channel as the source of a call; the parameters are those of `list`. */
  source(text: string, selection: Selection): VideoSource {
    return async (context) => {
      const { channel, listedAt, ...listed } = await this.list(text, selection, context);
      return { header: { type: 'channel', channel, listedAt }, resource: channel.id, ...listed };
    };
  }

  /**
   * Lists the newest uploads of a channel within the deadline of a call of its own.
   *
   * @throws ChannelNotFoundError | UpstreamError
   */
  listWithinDeadline(text: string, selection: Selection, context: RequestContext): Promise<ChannelWithUploads> {
    return readWithinDeadline(context, this.environment, (call) => this.list(text, selection, call));
  }

  /**
   * Lists the newest uploads of a channel.
   *
   * @param text the channel as the caller names it
   * @throws ChannelNotFoundError | UpstreamError, and the reason of `context.signal` when that is aborted first
   */
  private async list(text: string, selection: Selection, context: ReadingContext): Promise<ChannelWithUploads> {
    const reference = parseChannelReference(text);
    if (!reference || this.unknown.has(keyOf(reference))) throw new ChannelNotFoundError();
    try {
      const channelId = await this.resolve(reference, context);
      const [channel, selected] = await Promise.allSettled([
        this.channel(channelId, context),
        readSelection(selection, (count) => this.uploads(channelId, count, context), 'newest-first'),
      ]);
      // Other requests fail in arbitrary ways for a deleted channel: the reason of the channel itself is clear.
      if (channel.status === 'rejected') throw channel.reason;
      if (selected.status === 'rejected') throw selected.reason;
      const { list, uploads, sinceFound } = selected.value;
      return { channel: channel.value, uploads, sinceFound, listedAt: list.listedAt };
    } catch (error) {
      if (error instanceof ChannelNotFoundError) this.unknown.set(keyOf(reference), true);
      throw error;
    }
  }

  /**
   * Finds a channel, also one that was not found a moment ago.
   *
   * @param text the channel as the caller names it
   * @throws ChannelNotFoundError | UpstreamError, and the reason of `context.signal` when that is aborted first
   */
  async find(text: string, context: ReadingContext): Promise<Channel> {
    const reference = parseChannelReference(text);
    if (!reference) throw new ChannelNotFoundError();
    return this.channel(await this.resolve(reference, context), context);
  }

  private async resolve(reference: ChannelReference, context: ReadingContext): Promise<string> {
    if (reference.kind === 'id') return reference.id;
    const key = `${CACHE_FORMAT}:channel_id:${keyOf(reference)}`;
    return this.current(this.ids, key, context, (shared) => this.platform.resolveChannel(reference, shared));
  }

  private channel(channelId: string, context: ReadingContext): Promise<Channel> {
    const key = `${CACHE_FORMAT}:channel_name:${channelId}`;
    return this.current(this.channels, key, context, (shared) => this.platform.readChannel(channelId, shared));
  }

  private async current<T>(
    cache: ReadThroughCache<Dated & { value: T }>,
    key: string,
    context: ReadingContext,
    read: (shared: ReadingContext) => Promise<T>,
  ): Promise<T> {
    const load = async (shared: ReadingContext) => ({ value: await read(shared), readAtMs: Date.now() });
    const { value } = await cache.get(key, context, load, {
      serves: (known) => isYoungerThan(this.environment.CHANNEL_TTL_SECONDS, known),
      whenRefused: (known) => (isYoungerThan(LAST_READ_SECONDS, known) ? known : undefined),
    });
    return value;
  }

  private uploads(channelId: string, limit: number, context: ReadingContext): Promise<DatedList> {
    const isFresh = (list: DatedList) => isYoungerThan(this.environment.UPLOADS_TTL_SECONDS, list);
    return this.lists.get(
      `${CACHE_FORMAT}:list:${channelId}`,
      context,
      (shared, known) =>
        readCounted(
          limit,
          known && isFresh(known) ? known : undefined,
          () => this.newest(channelId, limit, shared, known),
          async (after) => {
            const page = await this.platform.uploads(channelId, after, shared);
            return { ...page, uploads: withKnown(page.uploads, known?.uploads ?? []) };
          },
        ),
      {
        serves: (list) => isFresh(list) && reaches(list, limit),
        purpose: String(limit),
        whenRefused: (list) => lastList(list, limit),
      },
    );
  }

  /** The first page. When the list has nothing new since it was read before, that costs a single request. */
  private async newest(
    channelId: string,
    limit: number,
    context: ReadingContext,
    known?: DatedList,
  ): Promise<DatedList> {
    const reading = this.platform.uploads(channelId, undefined, context);
    if (!known) return dated(await this.platform.describe(channelId, reading, context));
    const read = await reading;
    const page = { ...read, uploads: withKnown(read.uploads, known.uploads) };
    // Fewer than before may be those of a list that goes on in the list of Shorts.
    const isShorter = page.next === null && page.uploads.length < Math.min(limit, known.uploads.length);
    if (known.settled && !isShorter && !hasNews(read.uploads, known.uploads)) return dated({ ...page, settled: true });
    return dated(await this.platform.describe(channelId, page, context));
  }
}

function dated(page: DescribedPage): DatedList {
  return { ...listFrom(page), settled: page.settled, readAtMs: Date.now() };
}

/** Identifies a channel as it is named. Handles are case-insensitive on the platform; the older names are not. */
function keyOf(reference: ChannelReference): string {
  if (reference.kind === 'id') return `id:${reference.id}`;
  const name = reference.kind === 'handle' ? reference.handle.toLowerCase() : reference.name;
  return `${reference.kind}:${name}`;
}
