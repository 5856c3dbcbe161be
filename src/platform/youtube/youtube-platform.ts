import { setMaxListeners } from 'node:events';
import {
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { Environment } from '../../config/environment.js';
import type { ChannelReference } from '../../domain/channel-reference.js';
import { ChannelNotFoundError, UpstreamError } from '../../domain/errors.js';
import { type Channel, NO_DETAILS, type VideoOutcome } from '../../domain/transcript.js';
import { type ReadingContext, type UploadsList, VideoPlatform } from '../video-platform.js';
import { ChannelReadError } from './channel/channel-errors.js';
import { ChannelReader } from './channel/channel-reader.js';
import type { Admission } from './egress/circuit-breaker.js';
import { report } from './event-log.js';
import { type Attempt, withProxyFailover } from './egress/proxy-failover.js';
import type { Egress } from './egress/egress.js';
import { EgressPool } from './egress/egress-pool.js';
import type { RequestScope } from './egress/request-pipeline.js';
import { InnertubeClient } from './innertube/innertube-client.js';
import { loadRequestTemplates } from './innertube/request-templates.js';
import { requestMicroformat } from './video/player-requests.js';
import { RetryBudget } from './egress/retry.js';
import { withOptional } from './optional-work.js';
import { UpstreamMetrics } from './upstream-metrics.js';
import { mergeDetails } from './video/player-response.js';
import { VideoReader } from './video/video-reader.js';

const WARM_UP_DELAY_MS = 500;

const FAILED: VideoOutcome = { ok: false, details: NO_DETAILS, failure: { code: 'upstream_failure' } };

/** `VideoPlatform` for YouTube's InnerTube API. */
@Injectable()
export class YoutubePlatform
  extends VideoPlatform
  implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  private warmUp: NodeJS.Timeout | undefined;
  private warming: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly environment: Environment,
    private readonly metrics: UpstreamMetrics,
    private readonly egresses: EgressPool,
    private readonly innertube: InnertubeClient,
    private readonly channels: ChannelReader,
    private readonly videos: VideoReader,
  ) {
    super();
  }

  /**
   * Loads youtubei.js shortly after the start, so that neither the start nor the first call waits a quarter of a second for
   * it. The first call reports a failure to load.
   */
  onApplicationBootstrap(): void {
    this.warmUp = setTimeout(() => {
      this.warming = loadRequestTemplates().catch(() => undefined);
    }, WARM_UP_DELAY_MS);
  }

  /** Redis closes after this. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.egresses.storeState();
  }

  /** Closes every connection; requests in flight end as failures. */
  async onApplicationShutdown(): Promise<void> {
    clearTimeout(this.warmUp);
    await Promise.all([this.egresses.close(), this.warming]);
  }

  override async resolveChannel(reference: ChannelReference, context: ReadingContext): Promise<string> {
    context.signal.throwIfAborted();
    if (reference.kind === 'id') return reference.id;
    return this.readingChannel(JSON.stringify(reference), context, (scope) => this.channels.resolve(reference, scope));
  }

  override readChannel(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.readingChannel(channelId, context, (scope) => this.channels.read(channelId, scope));
  }

  override listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList> {
    return this.readingChannel(channelId, context, (scope) => this.channels.listUploads(channelId, count, scope));
  }

  override async readVideo(
    videoId: string,
    languages: readonly string[],
    context: ReadingContext,
  ): Promise<VideoOutcome> {
    const read = (egress: Egress, admission: Admission) =>
      this.readVideoThrough(this.scope(egress, admission, context), videoId, languages);
    const outcome = this.withRetryAfter(await withProxyFailover(this.egresses, 'video', videoId, context, read));
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

  private async readVideoThrough(
    scope: RequestScope,
    videoId: string,
    languages: readonly string[],
  ): Promise<Attempt<VideoOutcome>> {
    try {
      const [attempt, dated] = await withOptional(
        scope,
        () => this.videos.read(videoId, languages, scope),
        (optionalScope) => this.dates(videoId, optionalScope),
      );
      const details = mergeDetails(attempt.result.details, dated ?? {});
      return { ...attempt, result: { ...attempt.result, details } };
    } catch (error) {
      if (scope.context.signal.aborted) throw scope.context.signal.reason;
      // One video's failure must not fail the call, even when it is caused by a bug.
      report('warn', 'youtube_internal_error', { videoId, message: String(error) });
      return { result: FAILED, verdict: 'nothing', retryAfterSeconds: null };
    }
  }

  /** The exact publish date, which only WEB returns, with `PUBLISH_DATES=exact`. */
  private async dates(videoId: string, scope: RequestScope): Promise<{ publishedAt?: string | null }> {
    if (this.environment.PUBLISH_DATES !== 'exact' || scope.admission.probe) return {};
    // The kind is not used: WEB states which videos are eligible as Shorts, the list of Shorts which are Shorts.
    return {
      publishedAt: (await requestMicroformat(this.innertube, videoId, scope))?.publishedAt ?? null,
    };
  }

  private async readingChannel<T>(
    subject: string,
    context: ReadingContext,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<T> {
    const attempt = (egress: Egress, admission: Admission) =>
      this.channelAttempt(this.scope(egress, admission, context), read);
    const end = await withProxyFailover(this.egresses, 'channel', subject, context, attempt);
    if (end === null) {
      const cause = new Error('Every egress is blocked after refusals.');
      throw new UpstreamError('upstream_blocked', cause, this.egresses.blockedForSeconds('channel') ?? undefined);
    }
    if ('error' in end) throw end.error;
    return end.value;
  }

  /** Turns an exception into a result, so that another egress can be tried first. */
  private async channelAttempt<T>(
    scope: RequestScope,
    read: (scope: RequestScope) => Promise<T>,
  ): Promise<Attempt<{ value: T } | { error: Error }>> {
    try {
      return { result: { value: await read(scope) }, verdict: 'answered', retryAfterSeconds: null };
    } catch (error) {
      if (scope.context.signal.aborted) throw scope.context.signal.reason;
      if (error instanceof ChannelNotFoundError) {
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

  private scope(egress: Egress, admission: Admission, context: ReadingContext): RequestScope {
    // The videos of one call add up to a hundred listeners to its signal and remove them: not a leak.
    setMaxListeners(0, context.signal);
    const retries = admission.probe ? 0 : this.environment.UPSTREAM_RETRIES;
    return { egress, admission, context, budget: new RetryBudget(retries) };
  }
}
