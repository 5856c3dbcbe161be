import { Injectable } from '@nestjs/common';
import { Environment } from '../../../config/environment.js';
import { ChannelNotFoundError, PlaylistNotFoundError, UpstreamError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import {
  ContinuationRejectedError,
  type PlaylistVideos,
  type ReadingContext,
  type UploadsList,
  type UploadsListPage,
} from '../../video-platform.js';
import { EgressPool } from '../egress/egress-pool.js';
import { type Attempt, withProxyFailover } from '../egress/proxy-failover.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { requestScope } from '../egress/request-scope.js';
import { report } from '../event-log.js';
import { ChannelReadError } from './channel-errors.js';
import { ChannelReader } from './channel-reader.js';
import type { ChannelSource, NamedReference } from './channel-source.js';
import { PlaylistReader } from './playlist-reader.js';

/** Channels from the pages that YouTube's own clients read, through one egress after another. */
@Injectable()
export class InnertubeChannels implements ChannelSource {
  constructor(
    private readonly environment: Environment,
    private readonly egresses: EgressPool,
    private readonly channels: ChannelReader,
    private readonly playlists: PlaylistReader,
  ) {}

  resolve(reference: NamedReference, context: ReadingContext): Promise<string> {
    return this.throughEgresses(JSON.stringify(reference), context, (scope) => this.channels.resolve(reference, scope));
  }

  read(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.throughEgresses(channelId, context, (scope) => this.channels.read(channelId, scope));
  }

  listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList> {
    return this.throughEgresses(channelId, context, (scope) => this.channels.listUploads(channelId, count, scope));
  }

  listUploadsPage(channelId: string, token: string | undefined, context: ReadingContext): Promise<UploadsListPage> {
    return this.throughEgresses(channelId, context, (scope) => this.channels.listUploadsPage(channelId, token, scope));
  }

  listPlaylist(playlistId: string, count: number, context: ReadingContext): Promise<PlaylistVideos> {
    return this.throughEgresses(playlistId, context, (scope) => this.playlists.list(playlistId, count, scope));
  }

  private async throughEgresses<T>(
    subject: string,
    context: ReadingContext,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<T> {
    const end = await withProxyFailover(this.egresses, 'channel', subject, context, (egress, admission) =>
      this.attempt(requestScope(egress, admission, context, this.environment.UPSTREAM_RETRIES), read),
    );
    if (end === null) {
      const cause = new Error('Every egress is blocked after refusals.');
      throw new UpstreamError('upstream_blocked', cause, this.egresses.blockedForSeconds('channel') ?? undefined);
    }
    if ('error' in end) throw end.error;
    return end.value;
  }

  /** Turns an exception into a result, so that another egress can be tried first. */
  private async attempt<T>(
    scope: RequestScope,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<Attempt<{ value: T } | { error: Error }>> {
    try {
      return { result: { value: await read(scope) }, verdict: 'answered', retryAfterSeconds: null };
    } catch (error) {
      if (scope.context.signal.aborted) throw scope.context.signal.reason;
      if (isAnswer(error)) {
        return { result: { error }, verdict: 'answered', retryAfterSeconds: null };
      }
      if (error instanceof UpstreamError && error.cause instanceof ChannelReadError) {
        const { verdict, retryAfterSeconds } = error.cause;
        return { result: { error }, verdict, retryAfterSeconds };
      }
      report('warn', 'youtube_internal_error', { message: String(error) });
      return {
        result: { error: new UpstreamError('upstream_failure', error) },
        verdict: 'nothing',
        retryAfterSeconds: null,
      };
    }
  }
}

/** Whether an error states what the platform answered: another egress would get the same answer. */
function isAnswer(error: unknown): error is Error {
  return [ChannelNotFoundError, PlaylistNotFoundError, ContinuationRejectedError].some(
    (answer) => error instanceof answer,
  );
}
