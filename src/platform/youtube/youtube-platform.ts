import { setMaxListeners } from 'node:events';
import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Environment } from '../../config/environment.js';
import type { ChannelReference } from '../../domain/channel-reference.js';
import { ChannelNotFoundError, UpstreamError } from '../../domain/errors.js';
import { type Channel, NO_DETAILS, type VideoOutcome } from '../../domain/transcript.js';
import { type ReadingContext, type UploadsList, VideoPlatform } from '../video-platform.js';
import { ChannelReadError } from './channel/channel-errors.js';
import { ChannelReader } from './channel/channel-reader.js';
import type { Admission } from './egress/circuit-breaker.js';
import { ClientHealth } from './video/client-health.js';
import { report } from './event-log.js';
import { type Attempt, ATTEMPT_VERDICTS, withProxyFailover } from './egress/proxy-failover.js';
import { type Egress, EgressPool } from './egress/egress-pool.js';
import { FairLimiter } from './egress/fair-limiter.js';
import { HttpTransport } from './egress/http-transport.js';
import { InnertubeClient, type RequestScope } from './innertube/innertube-client.js';
import { loadRequestTemplates } from './innertube/request-templates.js';
import { FieldMaskSupport } from './innertube/field-mask-support.js';
import { requestMicroformat } from './video/player-requests.js';
import { RetryBudget } from './egress/retry.js';
import { withOptional } from './side-work.js';
import { UploadsReader } from './channel/uploads-reader.js';
import { UpstreamEvents } from './upstream-events.js';
import { mergeDetails } from './video/video-details.js';
import { VideoReader } from './video/video-reader.js';

const WARM_UP_DELAY_MS = 500;

const BLOCKED: VideoOutcome = { ok: false, details: NO_DETAILS, failure: { code: 'upstream_blocked' } };
const FAILED: VideoOutcome = { ok: false, details: NO_DETAILS, failure: { code: 'upstream_failure' } };

/** YouTube, read through its InnerTube API. */
@Injectable()
export class YoutubePlatform extends VideoPlatform implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger('YoutubePlatform');
  private readonly closing = new AbortController();
  private readonly egresses: EgressPool;
  private readonly fieldMasks: FieldMaskSupport;
  private readonly innertube: InnertubeClient;
  private readonly channels: ChannelReader;
  private readonly videos: VideoReader;
  private warmUp: NodeJS.Timeout | undefined;
  private warming: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly environment: Environment,
    private readonly events: UpstreamEvents,
  ) {
    super();
    const timeoutMs = environment.UPSTREAM_TIMEOUT_SECONDS * 1000;
    const limiter = new FairLimiter(environment.UPSTREAM_CONCURRENCY);
    const baseUrl = environment.YOUTUBE_BASE_URL === undefined ? null : new URL(environment.YOUTUBE_BASE_URL);
    this.fieldMasks = new FieldMaskSupport((key) => report(this.log, 'warn', 'youtube_fields_not_honoured', { key }));
    this.egresses = this.createEgressPool(timeoutMs);
    this.innertube = new InnertubeClient(
      new HttpTransport({ limiter, baseUrl, timeoutMs }),
      events,
      this.closing.signal,
    );
    const uploads = new UploadsReader(this.innertube, this.fieldMasks, events, this.log);
    this.channels = new ChannelReader(this.innertube, this.fieldMasks, uploads, this.log);
    this.videos = new VideoReader(this.innertube, this.fieldMasks, this.createClientHealth(), events, this.log);
    events.readStateFrom(() => ({
      inFlight: limiter.running,
      queued: limiter.queued,
      inFlightMax: environment.UPSTREAM_CONCURRENCY,
      egresses: this.egresses.state(),
      verdicts: ATTEMPT_VERDICTS,
    }));
  }

  /**
   * Does soon what the first call would otherwise wait for: nobody waits for it here, and a failure is the first call's.
   * Not at once, since a quarter of a second of loading would hold up the start.
   */
  onApplicationBootstrap(): void {
    this.warmUp = setTimeout(() => {
      this.warming = loadRequestTemplates().catch(() => undefined);
    }, WARM_UP_DELAY_MS);
  }

  /** Closes every connection; what is still under way ends as a failure. */
  async onApplicationShutdown(): Promise<void> {
    clearTimeout(this.warmUp);
    this.closing.abort(new Error('The service is shutting down.'));
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
    const outcome = (await withProxyFailover(this.egresses, 'video', videoId, context, read)) ?? BLOCKED;
    this.events.count('video', '-', outcome.ok ? 'ok' : outcome.failure.code);
    return outcome;
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
      const { result } = attempt;
      return { ...attempt, result: { ...result, details: mergeDetails(result.details, dated ?? {}) } };
    } catch (error) {
      if (scope.context.signal.aborted) throw scope.context.signal.reason;
      // Trouble with one video must not become trouble of the call; a bug in here is one of its kinds.
      report(this.log, 'warn', 'youtube_internal_error', { videoId, message: String(error) });
      return { result: FAILED, verdict: 'nothing', retryAfterSeconds: null };
    }
  }

  /** What only WEB tells about a video, when the operator wants an exact date for each. */
  private async dates(videoId: string, scope: RequestScope): Promise<{ publishedAt?: string | null }> {
    if (this.environment.PUBLISH_DATES !== 'exact' || scope.admission.probe) return {};
    // Its kind is left out: it tells which videos could be Shorts, where the list of Shorts tells which are.
    return {
      publishedAt: (await requestMicroformat(this.innertube, this.fieldMasks, videoId, scope))?.publishedAt ?? null,
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
    if (end === null) throw new UpstreamError('upstream_blocked', new Error('Every egress is blocked after refusals.'));
    if ('error' in end) throw end.error;
    return end.value;
  }

  /** What is thrown becomes a result here, so that another exit can be tried before anybody sees it. */
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
      report(this.log, 'warn', 'youtube_internal_error', { message: String(error) });
      return {
        result: { error: new UpstreamError('upstream_failure', error) },
        verdict: 'nothing',
        retryAfterSeconds: null,
      };
    }
  }

  private scope(egress: Egress, admission: Admission, context: ReadingContext): RequestScope {
    // A hundred videos of one call watch its signal at once, and all let go of it: that is no leak to be warned of.
    setMaxListeners(0, context.signal);
    const retries = admission.probe ? 0 : this.environment.UPSTREAM_RETRIES;
    return { egress, admission, context, budget: new RetryBudget(retries) };
  }

  private createClientHealth(): ClientHealth {
    return new ClientHealth(this.environment.YOUTUBE_CLIENTS, ({ name: egress }, client, restMs) =>
      restMs === null
        ? report(this.log, 'log', 'youtube_client_back', { exit: egress, client })
        : report(this.log, 'warn', 'youtube_client_rested', { exit: egress, client, restSeconds: restMs / 1000 }),
    );
  }

  private createEgressPool(connectTimeoutMs: number): EgressPool {
    return new EgressPool({
      proxyUrls: this.environment.UPSTREAM_PROXY_URL ?? [],
      connectionsMax: this.environment.UPSTREAM_CONCURRENCY,
      connectTimeoutMs,
      onBreaker: (egress, use, openForMs) =>
        openForMs === null
          ? report(this.log, 'log', 'youtube_block_closed', { exit: egress, use })
          : report(this.log, 'warn', 'youtube_block_opened', { exit: egress, use, openForSeconds: openForMs / 1000 }),
      onCooldown: (egress, restMs) =>
        report(this.log, 'log', 'youtube_exit_rested', { exit: egress, restSeconds: restMs / 1000 }),
      onVerdict: (egress, use, verdict) => this.events.egress({ egress, use, verdict }),
    });
  }
}
