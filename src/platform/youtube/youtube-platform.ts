import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Environment } from '../../config/environment.js';
import type { ChannelReference } from '../../domain/references/channel-reference.js';
import { ChannelNotFoundError, PlaylistNotFoundError, UpstreamError } from '../../domain/errors.js';
import { parsePlaylistReference } from '../../domain/references/playlist-reference.js';
import { type Channel, NO_DETAILS, type VideoOutcome } from '../../domain/transcript.js';
import {
  ContinuationRejectedError,
  type DescribedPage,
  type PlaylistPage,
  type ReadingContext,
  type UploadsListPage,
  VideoPlatform,
} from '../video-platform.js';
import { addressOf, ChannelReader, ListReadError } from './channel/channel-reader.js';
import { type Additions, ListAdditions, withAdditions } from './channel/list-additions.js';
import { ListReader } from './channel/list-reader.js';
import { type AttemptEnd, RetryBudget } from './egress/attempt.js';
import { type AttemptResult, EgressPool } from './egress/egress-pool.js';
import { Experiment } from './egress/experiment.js';
import type { RequestScope } from './egress/request-pipeline.js';
import { isHardRefusal, isUnreached } from './egress/upstream-response.js';
import { report } from './event-log.js';
import { InnertubeClient } from './innertube/innertube-client.js';
import { withOptional } from './optional-work.js';
import { UpstreamMetrics } from './upstream-metrics.js';
import { requestPublishDate } from './video/player-requests.js';
import { mergeDetails } from './video/player-response.js';
import { VideoReader } from './video/video-reader.js';

const FAILED: VideoOutcome = { ok: false, details: NO_DETAILS, failure: { code: 'upstream_failure' } };

/** `VideoPlatform` for YouTube's InnerTube API: its readers, through one egress after another until one answers. */
@Injectable()
export class YoutubePlatform extends VideoPlatform implements OnApplicationShutdown {
  constructor(
    private readonly environment: Environment,
    private readonly metrics: UpstreamMetrics,
    private readonly egresses: EgressPool,
    private readonly innertube: InnertubeClient,
    private readonly channels: ChannelReader,
    private readonly lists: ListReader,
    private readonly additions: ListAdditions,
    private readonly videos: VideoReader,
    private readonly experiment: Experiment,
  ) {
    super();
  }

  /** Closes every connection; requests in flight end as failures. */
  async onApplicationShutdown(): Promise<void> {
    await this.egresses.close();
  }

  override get servesLists(): boolean {
    return this.egresses.admitsLists;
  }

  override async resolveChannel(reference: ChannelReference, context: ReadingContext): Promise<string> {
    context.signal.throwIfAborted();
    if (reference.kind === 'id') return reference.id;
    return this.readList(addressOf(reference), context, (scope) => this.channels.resolve(reference, scope));
  }

  override readChannel(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.readList(channelId, context, (scope) => this.channels.read(channelId, scope));
  }

  override uploads(channelId: string, after: string | undefined, context: ReadingContext): Promise<UploadsListPage> {
    return this.readList(channelId, context, (scope) => this.lists.uploads(channelId, after, scope));
  }

  override async describe(
    channelId: string,
    page: UploadsListPage | Promise<UploadsListPage>,
    context: ReadingContext,
  ): Promise<DescribedPage> {
    const reading = Promise.resolve(page);
    const adding = this.readList(channelId, context, (scope) => this.additions.read(channelId, reading, scope)).catch(
      (): Additions => ({ shorts: null, feed: null }),
    );
    const read = await reading;
    const additions = await adding;
    context.signal.throwIfAborted();
    return { ...withAdditions(read, additions), settled: additions.shorts !== null };
  }

  override async playlist(
    playlistId: string,
    after: string | undefined,
    context: ReadingContext,
  ): Promise<PlaylistPage> {
    context.signal.throwIfAborted();
    const reference = parsePlaylistReference(playlistId);
    if (reference?.kind !== 'playlist' || reference.id !== playlistId) throw new PlaylistNotFoundError();
    return this.readList(playlistId, context, (scope) => this.lists.playlist(playlistId, after, scope));
  }

  private async readList<T>(
    subject: string,
    context: ReadingContext,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<T> {
    const end = await this.egresses.read({
      ...{ use: 'channel', subject, context, retries: this.environment.UPSTREAM_RETRIES },
      attempt: (scope) => this.attemptList(scope, read),
    });
    if (end && 'value' in end) return end.value;
    const error = end ? end.error : new UpstreamError('upstream_blocked', new Error('Every egress is blocked.'));
    if (!(error instanceof UpstreamError) || error.code !== 'upstream_blocked') throw error;
    const waitSeconds = error.retryAfterSeconds ?? this.egresses.blockedForSeconds('channel') ?? undefined;
    throw new UpstreamError(error.code, error.cause, waitSeconds);
  }

  override async readVideo(
    videoId: string,
    languages: readonly string[],
    context: ReadingContext,
    publishedAt: string | null = null,
  ): Promise<VideoOutcome> {
    context.signal.throwIfAborted();
    const remembered = this.videos.remembered(videoId, languages);
    if (remembered) return remembered;
    const read = await this.egresses.read({
      ...{ use: 'video', subject: videoId, context },
      // Shared by the attempts through all egresses: a gateway has eight for each video.
      retries: new RetryBudget(this.environment.UPSTREAM_RETRIES),
      attempt: (scope) => this.attemptVideo(scope, videoId, languages, publishedAt),
    });
    const outcome = this.withRetryAfter(read);
    this.metrics.notice('video', '-', outcome.ok ? 'ok' : outcome.failure.code);
    return outcome;
  }

  /** A block has no outcome, or one without the time that it lasts. */
  private withRetryAfter(outcome: VideoOutcome | null): VideoOutcome {
    const failed = outcome ?? { ok: false, details: NO_DETAILS, failure: { code: 'upstream_blocked' } };
    if (failed.ok || failed.failure.code !== 'upstream_blocked') return failed;
    const retryAfterSeconds = failed.failure.retryAfterSeconds ?? this.egresses.blockedForSeconds('video');
    return retryAfterSeconds === null ? failed : { ...failed, failure: { ...failed.failure, retryAfterSeconds } };
  }

  private async attemptVideo(
    scope: RequestScope,
    videoId: string,
    languages: readonly string[],
    publishedAt: string | null,
  ): Promise<AttemptResult<VideoOutcome>> {
    try {
      const [attempt, dated] = await withOptional(
        scope,
        () => this.videos.read(videoId, languages, scope),
        (optionalScope) => this.dates(videoId, publishedAt, optionalScope),
      );
      const details = mergeDetails(attempt.result.details, dated ?? {});
      return { ...attempt, result: { ...attempt.result, details } };
    } catch (error) {
      if (scope.context.signal.aborted) throw scope.context.signal.reason;
      // One video's failure must not fail the call, even when it is caused by a bug.
      report('error', 'youtube_internal_error', { videoId, stack: stackOf(error) });
      return { result: FAILED, end: 'answered' };
    }
  }

  /** The exact publish date with `PUBLISH_DATES=exact`, which only WEB returns: requested unless it is known. */
  private async dates(
    videoId: string,
    publishedAt: string | null,
    scope: RequestScope,
  ): Promise<{ publishedAt?: string | null }> {
    if (this.environment.PUBLISH_DATES !== 'exact') return {};
    if (publishedAt !== null) return { publishedAt };
    return { publishedAt: await requestPublishDate(this.innertube, videoId, scope) };
  }

  /** Turns an exception into a result, so that another egress can be tried first. */
  private async attemptList<T>(
    scope: RequestScope,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<AttemptResult<{ value: T } | { error: Error }>> {
    try {
      return { result: { value: await read(scope) }, end: 'answered' };
    } catch (error) {
      if (scope.context.signal.aborted) throw scope.context.signal.reason;
      // These state what the platform answered: another egress would get the same answer.
      for (const answer of [ChannelNotFoundError, PlaylistNotFoundError, ContinuationRejectedError])
        if (error instanceof answer) return { result: { error }, end: 'answered' };
      if (error instanceof UpstreamError && error.cause instanceof ListReadError)
        return { result: { error }, end: await this.endOf(error.cause.response, scope) };
      report('error', 'youtube_internal_error', { stack: stackOf(error) });
      return { result: { error: new UpstreamError('upstream_failure', error) }, end: 'answered' };
    }
  }

  /** How an attempt at a list ended for its egress, which a control finds out when the list or the egress is refused. */
  private async endOf(response: ListReadError['response'], scope: RequestScope): Promise<AttemptEnd> {
    if (response.kind === 'busy') return 'busy';
    if (response.kind !== 'blocked') return isUnreached(response) ? 'unreached' : 'answered';
    if (isHardRefusal(response)) return 'refused';
    scope.egress.uses.channel.doubt('list', scope.attempt.subject, 'WEB');
    const doubt = { kind: 'list', client: null, sinceMs: performance.now() } as const;
    return (await this.experiment.settle(doubt, 'WEB', scope)) === 'served' ? 'answered' : 'refused';
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error && error.stack !== undefined ? error.stack : String(error);
}
