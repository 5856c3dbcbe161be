import { Injectable } from '@nestjs/common';
import type { Channel } from '../../../domain/transcript.js';
import type { PlaylistVideos, ReadingContext, UploadsList } from '../../video-platform.js';
import { DataApiChannels } from '../data-api/data-api-channels.js';
import { DataApiClient, DataApiUnansweredError } from '../data-api/data-api-client.js';
import type { ChannelSource, NamedReference } from './channel-source.js';
import { InnertubeChannels } from './innertube-channels.js';

/** Asks the Data API first, if a key is configured, and InnerTube for whatever it does not answer. */
@Injectable()
export class ChannelSources implements ChannelSource {
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

  listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos> {
    return this.first((source) => source.listPlaylist(playlistId, count, context));
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
