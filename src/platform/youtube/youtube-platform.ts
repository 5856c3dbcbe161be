import { setMaxListeners } from 'node:events';
import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Environment } from '../../config/environment.js';
import type { ChannelReference } from '../../domain/channel-reference.js';
import { ChannelNotFoundError, UpstreamError } from '../../domain/errors.js';
import { type Channel, NO_DETAILS, type VideoOutcome } from '../../domain/transcript.js';
import { type ReadingContext, type UploadsList, VideoPlatform } from '../video-platform.js';
import { ChannelTrouble } from './channel/channel-errors.js';
import { ChannelReader } from './channel/channel-reader.js';
import type { Admission } from './egress/circuit-breaker.js';
import { ClientStanding } from './video/client-health.js';
import { report } from './event-log.js';
import { type Attempt, FINDINGS, throughExits } from './egress/proxy-failover.js';
import { type Exit, Exits } from './egress/egress-pool.js';
import { FairLimiter } from './egress/fair-limiter.js';
import { HttpRequests } from './egress/http-transport.js';
import { InnertubeClient, type Work } from './innertube/innertube-client.js';
import { loadInnertubeRequests } from './innertube/request-templates.js';
import { PartialResponses } from './innertube/field-mask-support.js';
import { askMicroformat } from './video/player-requests.js';
import { RetryBudget } from './egress/retry.js';
import { withSide } from './side-work.js';
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
  private readonly exits: Exits;
  private readonly partial: PartialResponses;
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
    this.partial = new PartialResponses((key) => report(this.log, 'warn', 'youtube_fields_not_honoured', { key }));
    this.exits = this.openExits(timeoutMs);
    this.innertube = new InnertubeClient(
      new HttpRequests({ limiter, baseUrl, timeoutMs }),
      events,
      this.closing.signal,
    );
    const uploads = new UploadsReader(this.innertube, this.partial, events, this.log);
    this.channels = new ChannelReader(this.innertube, this.partial, uploads, this.log);
    this.videos = new VideoReader(this.innertube, this.partial, this.openStanding(), events, this.log);
    events.readStateFrom(() => ({
      inFlight: limiter.running,
      queued: limiter.queued,
      inFlightMax: environment.UPSTREAM_CONCURRENCY,
      exits: this.exits.state(),
      findings: FINDINGS,
    }));
  }

  /**
   * Does soon what the first call would otherwise wait for: nobody waits for it here, and a failure is the first call's.
   * Not at once, since a quarter of a second of loading would hold up the start.
   */
  onApplicationBootstrap(): void {
    this.warmUp = setTimeout(() => {
      this.warming = loadInnertubeRequests().catch(() => undefined);
    }, WARM_UP_DELAY_MS);
  }

  /** Closes every connection; what is still under way ends as a failure. */
  async onApplicationShutdown(): Promise<void> {
    clearTimeout(this.warmUp);
    this.closing.abort(new Error('The service is shutting down.'));
    await Promise.all([this.exits.close(), this.warming]);
  }

  override async resolveChannel(reference: ChannelReference, context: ReadingContext): Promise<string> {
    context.signal.throwIfAborted();
    if (reference.kind === 'id') return reference.id;
    return this.readingChannel(JSON.stringify(reference), context, (work) => this.channels.resolve(reference, work));
  }

  override readChannel(channelId: string, context: ReadingContext): Promise<Channel> {
    return this.readingChannel(channelId, context, (work) => this.channels.read(channelId, work));
  }

  override listUploads(channelId: string, count: number, context: ReadingContext): Promise<UploadsList> {
    return this.readingChannel(channelId, context, (work) => this.channels.listUploads(channelId, count, work));
  }

  override async readVideo(
    videoId: string,
    languages: readonly string[],
    context: ReadingContext,
  ): Promise<VideoOutcome> {
    const read = (exit: Exit, admission: Admission) =>
      this.readVideoThrough(this.work(exit, admission, context), videoId, languages);
    const outcome = (await throughExits(this.exits, 'video', videoId, context, read)) ?? BLOCKED;
    this.events.count('video', '-', outcome.ok ? 'ok' : outcome.failure.code);
    return outcome;
  }

  private async readVideoThrough(
    work: Work,
    videoId: string,
    languages: readonly string[],
  ): Promise<Attempt<VideoOutcome>> {
    try {
      const [attempt, dated] = await withSide(
        work,
        () => this.videos.read(videoId, languages, work),
        (sideWork) => this.dates(videoId, sideWork),
      );
      const { result } = attempt;
      return { ...attempt, result: { ...result, details: mergeDetails(result.details, dated ?? {}) } };
    } catch (error) {
      if (work.context.signal.aborted) throw work.context.signal.reason;
      // Trouble with one video must not become trouble of the call; a bug in here is one of its kinds.
      report(this.log, 'warn', 'youtube_internal_error', { videoId, message: String(error) });
      return { result: FAILED, finding: 'nothing', retryAfterSeconds: null };
    }
  }

  /** What only WEB tells about a video, when the operator wants an exact date for each. */
  private async dates(videoId: string, work: Work): Promise<{ publishedAt?: string | null }> {
    if (this.environment.PUBLISH_DATES !== 'exact' || work.admission.probe) return {};
    // Its kind is left out: it tells which videos could be Shorts, where the list of Shorts tells which are.
    return { publishedAt: (await askMicroformat(this.innertube, this.partial, videoId, work))?.publishedAt ?? null };
  }

  private async readingChannel<T>(
    subject: string,
    context: ReadingContext,
    read: (work: Work) => Promise<T>,
  ): Promise<T> {
    const attempt = (exit: Exit, admission: Admission) =>
      this.channelAttempt(this.work(exit, admission, context), read);
    const end = await throughExits(this.exits, 'channel', subject, context, attempt);
    if (end === null) throw new UpstreamError('upstream_blocked', new Error('Every exit is shut after refusals.'));
    if ('error' in end) throw end.error;
    return end.value;
  }

  /** What is thrown becomes a result here, so that another exit can be tried before anybody sees it. */
  private async channelAttempt<T>(
    work: Work,
    read: (work: Work) => Promise<T>,
  ): Promise<Attempt<{ value: T } | { error: Error }>> {
    try {
      return { result: { value: await read(work) }, finding: 'answered', retryAfterSeconds: null };
    } catch (error) {
      if (work.context.signal.aborted) throw work.context.signal.reason;
      if (error instanceof ChannelNotFoundError) {
        return { result: { error }, finding: 'answered', retryAfterSeconds: null };
      }
      if (error instanceof UpstreamError && error.cause instanceof ChannelTrouble) {
        const { finding, retryAfterSeconds } = error.cause;
        return { result: { error }, finding, retryAfterSeconds };
      }
      report(this.log, 'warn', 'youtube_internal_error', { message: String(error) });
      return {
        result: { error: new UpstreamError('upstream_failure', error) },
        finding: 'nothing',
        retryAfterSeconds: null,
      };
    }
  }

  private work(exit: Exit, admission: Admission, context: ReadingContext): Work {
    // A hundred videos of one call watch its signal at once, and all let go of it: that is no leak to be warned of.
    setMaxListeners(0, context.signal);
    const retries = admission.probe ? 0 : this.environment.UPSTREAM_RETRIES;
    return { exit, admission, context, budget: new RetryBudget(retries) };
  }

  private openStanding(): ClientStanding {
    return new ClientStanding(this.environment.YOUTUBE_CLIENTS, ({ name: exit }, client, restMs) =>
      restMs === null
        ? report(this.log, 'log', 'youtube_client_back', { exit, client })
        : report(this.log, 'warn', 'youtube_client_rested', { exit, client, restSeconds: restMs / 1000 }),
    );
  }

  private openExits(connectTimeoutMs: number): Exits {
    return new Exits({
      proxyUrls: this.environment.UPSTREAM_PROXY_URL ?? [],
      connectionsMax: this.environment.UPSTREAM_CONCURRENCY,
      connectTimeoutMs,
      onBreaker: (exit, use, openForMs) =>
        openForMs === null
          ? report(this.log, 'log', 'youtube_block_closed', { exit, use })
          : report(this.log, 'warn', 'youtube_block_opened', { exit, use, openForSeconds: openForMs / 1000 }),
      onRest: (exit, restMs) => report(this.log, 'log', 'youtube_exit_rested', { exit, restSeconds: restMs / 1000 }),
      onFinding: (exit, use, finding) => this.events.exit({ exit, use, finding }),
    });
  }
}
