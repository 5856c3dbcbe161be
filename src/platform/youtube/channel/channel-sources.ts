import { Injectable, Logger } from '@nestjs/common';
import type { Channel } from '../../../domain/transcript.js';
import {
  ContinuationRejectedError,
  type PlaylistVideos,
  type ReadingContext,
  type UploadsList,
  type UploadsListPage,
} from '../../video-platform.js';
import { DataApiChannels } from '../data-api/data-api-channels.js';
import { DataApiClient, DataApiUnansweredError } from '../data-api/data-api-client.js';
import type { ChannelSource, NamedReference } from './channel-source.js';
import { InnertubeChannels } from './innertube-channels.js';

/** Far above any channel: a list that is still not at its end repeats itself, and ends there. */
const PAGES_MAX = 5_000;

/** `<source>:<number of the page>:<token of the source>`. */
const CONTINUATION = /^(innertube|data-api):([1-9]\d{0,5}):(.+)$/s;

/** Where a list goes on: a token means something to the source alone that issued it. */
interface Continuation {
  source: 'innertube' | 'data-api';
  /** The number of the page, from 1. */
  page: number;
  token: string;
}

/** Asks the Data API first, if a key is configured, and InnerTube for whatever it does not answer. */
@Injectable()
export class ChannelSources implements ChannelSource {
  private readonly logger = new Logger(ChannelSources.name);

  constructor(
    private readonly client: DataApiClient,
    private readonly dataApi: DataApiChannels,
    private readonly innertube: InnertubeChannels,
  ) {}

  resolve(reference: NamedReference, context: ReadingContext): Promise<string> {
    return this.first((source) => source.resolve(reference, context));
  }

  read(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.first((source) => source.read(channelId, context));
  }

  listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList> {
    return this.first((source) => source.listUploads(channelId, count, context));
  }

  async listUploadsPage(
    channelId: string,
    continuation: string | undefined,
    context: ReadingContext,
  ): Promise<UploadsListPage> {
    if (continuation === undefined) {
      return this.first(async (source) => {
        const { uploads, next } = await source.listUploadsPage(channelId, undefined, context);
        const name = source === this.dataApi ? 'data-api' : 'innertube';
        return { uploads, next: next === null ? null : `${name}:2:${next}` };
      });
    }
    const { source, page, token } = readContinuation(continuation);
    const { uploads, next } = await this.continued(source, (from) => from.listUploadsPage(channelId, token, context));
    if (next !== null && page >= PAGES_MAX) {
      this.logger.warn({ event: 'youtube_uploads_cut', channelId, pages: page });
      return { uploads, next: null };
    }
    return { uploads, next: next === null ? null : `${source}:${page + 1}:${next}` };
  }

  listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos> {
    return this.first((source) => source.listPlaylist(playlistId, count, context));
  }

  /** InnerTube cannot go on where the Data API stopped, but can start again. */
  private async continued<T>(name: Continuation['source'], read: (source: ChannelSource) => Promise<T>): Promise<T> {
    if (name === 'innertube') return read(this.innertube);
    if (!this.client.configured) throw new ContinuationRejectedError();
    try {
      return await read(this.dataApi);
    } catch (error) {
      if (!(error instanceof DataApiUnansweredError)) throw error;
      throw new ContinuationRejectedError(error);
    }
  }

  private async first<T>(read: (source: ChannelSource) => Promise<T>): Promise<T> {
    if (!this.client.configured) return read(this.innertube);
    try {
      return await read(this.dataApi);
    } catch (error) {
      if (!(error instanceof DataApiUnansweredError)) throw error;
      this.client.countFallback(error.reason);
      return read(this.innertube);
    }
  }
}

function readContinuation(continuation: string): Continuation {
  const [, source, page, token] = CONTINUATION.exec(continuation) ?? [];
  if ((source !== 'innertube' && source !== 'data-api') || token === undefined) throw new ContinuationRejectedError();
  return { source, page: Number(page), token };
}
