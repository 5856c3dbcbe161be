import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { ChannelNotFoundError, UpstreamError } from '../domain/errors.js';
import type { Channel, Upload } from '../domain/transcript.js';
import { VideoPlatform, type UploadsListPage } from '../platform/video-platform.js';
import { Call } from '../transcripts/call.js';
import { ChannelUploads } from '../transcripts/sources/channel-uploads.js';
import { blocked, type ClaimedSlice, type SliceEnd } from './slice.js';

/** A page of the list, to be stored. `next` is null at the end of the list. */
interface ListedPage {
  channel: Channel;
  uploads: Upload[];
  next: string | null;
}

/** Reads one page of a channel's uploads. */
@Injectable()
export class ListingSlice {
  constructor(
    private readonly channels: ChannelUploads,
    private readonly platform: VideoPlatform,
    private readonly environment: Environment,
  ) {}

  /**
   * Resolves to how the slice ends when it has no page.
   *
   * @throws UpstreamError | CallEnded | ContinuationRejectedError when the list could not be read
   */
  async run(slice: ClaimedSlice, stop: AbortSignal): Promise<ListedPage | SliceEnd> {
    const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, { responseEnd: stop, background: true });
    const { job, continuation, setbacks } = slice;
    try {
      const channel = job.channel ?? (await this.channels.find(job.request.channel, call));
      const page = await this.platform.listUploadsPage(channel.id, continuation, call);
      return { channel, ...requestedPart(page, job.request.since) };
    } catch (error) {
      if (stop.aborted) return { setbacks };
      if (error instanceof ChannelNotFoundError) return { change: { state: 'failed', reason: error.code } };
      if (error instanceof UpstreamError && error.code === 'upstream_blocked') return blocked(setbacks);
      throw error;
    } finally {
      call.finish();
    }
  }
}

/** The uploads of a page that are newer than `since`, each once; the list ends there. */
export function requestedPart({ uploads, next }: UploadsListPage, since: string | null): Omit<ListedPage, 'channel'> {
  const end = uploads.findIndex(({ videoId }) => videoId === since);
  const newer = end === -1 ? uploads : uploads.slice(0, end);
  const unique = [...new Map(newer.map((upload) => [upload.videoId, upload])).values()];
  return { uploads: unique, next: end === -1 ? next : null };
}
