import { Injectable, Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { parseChannelReference } from '../domain/channel-reference.js';
import {
  ChannelNotFoundError,
  DomainError,
  InvalidApiKeyError,
  PlanLimitExceededError,
  UpstreamError,
} from '../domain/errors.js';
import { NO_DETAILS, type Channel, type Upload } from '../domain/transcript.js';
import type { ReadingContext } from '../platform/video-platform.js';
import { QuotaService } from '../quota/quota.service.js';
import { inSpan } from '../observability/tracing/tracer.js';
import { limitThatFits, requiredCount, type CallPlan, type Payer, type PlannedVideo } from './call-plan.js';
import { CallEnded, type Call } from './call.js';
import { ChannelDirectory } from './channel-directory.js';
import { Delivery, type DeliveryWork, type LateReservation } from './delivery.js';
import { ResponseMemory } from './response/response-memory.js';
import { TranscriptCache } from './cache/transcript-cache.js';
import { TranscriptMetrics } from './transcript-metrics.js';
import type { TextForm } from './cache/transcript-text.js';
import { VideoFetches, type Fetched } from './video-fetches.js';

/** What a caller asks for, and who pays. */
export interface TranscriptsRequest extends Payer {
  reference: string;
  /** At most this many of the newest uploads. */
  limit: number;
  /** Languages in order of preference; empty for the video's original one. */
  languages: readonly string[];
}

/** Seconds that a reservation outlives its call's deadline, for the settlement. */
const LEASE_MARGIN_SECONDS = 15;

/** The use case: the transcripts of a channel's newest uploads. */
@Injectable()
export class TranscriptsService {
  private readonly logger = new Logger(TranscriptsService.name);
  private readonly running = new Set<Promise<unknown>>();

  constructor(
    private readonly directory: ChannelDirectory,
    private readonly cache: TranscriptCache,
    private readonly fetches: VideoFetches,
    private readonly quota: QuotaService,
    private readonly environment: Environment,
    private readonly memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
  ) {}

  /**
   * Everything that can refuse a call: finds the channel, lists its uploads, looks them up and reserves quota for what
   * is missing. Nothing is fetched and nothing charged when it throws.
   *
   * @throws ChannelNotFoundError | PlanLimitExceededError | UpstreamError | InvalidApiKeyError
   */
  prepare(request: TranscriptsRequest, call: Call): Promise<CallPlan> {
    return inSpan('transcripts.prepare', { 'transcripts.limit': request.limit }, () => this.plan(request, call));
  }

  private async plan(request: TranscriptsRequest, call: Call): Promise<CallPlan> {
    this.memory.refuseWhenFull();
    const reference = parseChannelReference(request.reference);
    if (!reference) throw new ChannelNotFoundError();
    try {
      const channelId = await this.directory.resolve(reference, call);
      const [channel, uploads] = await this.readChannel(channelId, request.limit, call);
      const videos = await this.lookUp(uploads, request.languages);
      const { organizationId, keyId, requestId } = request;
      const payer = { organizationId, keyId, requestId };
      const reserved = await this.reserve(payer, channelId, videos, call);
      return { payer, channel, videos, languages: request.languages, ...reserved };
    } catch (error) {
      if (error instanceof CallEnded) throw new UpstreamError('upstream_timeout', error);
      // The organization was deleted since the key was looked at.
      if (error instanceof DomainError && error.code === 'not_found') throw new InvalidApiKeyError();
      throw error;
    }
  }

  /**
   * Fetches what is missing and gives the answer as it comes; a failure here is an entry. The fetching begins at once
   * and never waits for the reader, and the reservation is settled when it ends, whether or not anybody reads.
   *
   * @param form in which the texts go out
   */
  deliver(plan: CallPlan, call: Call, form: TextForm): Delivery {
    const { languages } = plan;
    const work: DeliveryWork = {
      fetch: ({ videoId }, context) => this.fetchInSpan(videoId, languages, context),
      texts: (wanted, inForm) => this.cache.texts(wanted, languages, inForm),
      reserveEvicted: (uploads) => this.reserveEvicted(plan, uploads, call),
      settle: (buffered, fetched) => this.settle(buffered, fetched),
      track: (promise) => void this.untilIdle(promise),
    };
    return new Delivery(plan, call, form, work, this.environment.UPSTREAM_CONCURRENCY, this.memory, this.metrics);
  }

  /** Resolves when no fetch and no settlement is under way any more. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.allSettled(this.running);
  }

  private fetchInSpan(videoId: string, languages: readonly string[], context: ReadingContext): Promise<Fetched> {
    return inSpan('transcripts.fetch', { 'transcripts.video_id': videoId }, async (span) => {
      const fetched = await this.fetches.fetch(videoId, languages, context);
      const { outcome, own } = fetched;
      span.setAttributes({ 'transcripts.outcome': outcome.ok ? 'ok' : outcome.failure.code, 'transcripts.own': own });
      return fetched;
    });
  }

  private untilIdle<T>(work: Promise<T>): Promise<T> {
    const running = work.finally(() => this.running.delete(running));
    this.running.add(running);
    return running;
  }

  /**
   * The plan counted on the cache, so these were not reserved for. They are fetched as a call of their own would fetch
   * them, never for free: as many of them as the quota allows.
   *
   * @throws CallEnded when the call ends first
   */
  private async reserveEvicted(plan: CallPlan, uploads: readonly Upload[], call: Call): Promise<LateReservation> {
    const { payer, channel, languages } = plan;
    const forgetting = uploads.map(({ videoId }) => this.cache.evict(videoId, languages));
    await call.within(Promise.all(forgetting));
    for (let granted = uploads.length; granted > 0;) {
      const buffered = await this.hold(payer, channel.id, granted, call).catch((error: unknown) => {
        if (error instanceof CallEnded) throw error;
        this.logger.warn({ event: 'evicted_texts_not_fetched', videos: uploads.length, cause: String(error) });
        return undefined;
      });
      if (!buffered) break;
      if (buffered.reservation) return { reservation: buffered.reservation, granted };
      const { limit, used, reserved } = buffered.quota;
      granted = Math.min(granted - 1, limit - used - reserved);
    }
    return { reservation: undefined, granted: 0 };
  }

  private async readChannel(channelId: string, limit: number, call: Call): Promise<[Channel, Upload[]]> {
    const [channel, uploads] = await Promise.allSettled([
      this.directory.channel(channelId, call),
      this.directory.uploads(channelId, limit, call),
    ]);
    if (channel.status === 'fulfilled' && uploads.status === 'fulfilled') return [channel.value, uploads.value];
    const reasons = [channel, uploads].flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    // A channel that is gone answers oddly in other places too: the plain reason goes first.
    throw reasons.find((reason) => reason instanceof ChannelNotFoundError) ?? reasons[0];
  }

  private async lookUp(uploads: readonly Upload[], languages: readonly string[]): Promise<PlannedVideo[]> {
    const open = uploads.filter((upload) => upload.failure === null);
    const outcomes = await this.cache.getMany(
      open.map((upload) => upload.videoId),
      languages,
    );
    for (const outcome of outcomes) this.metrics.cache.transcript.count(outcome !== undefined);
    const known = new Map(open.map((upload, index) => [upload.videoId, outcomes[index]]));
    return uploads.map((upload) => ({
      upload,
      outcome: upload.failure
        ? { ok: false, details: NO_DETAILS, failure: { code: upload.failure } }
        : known.get(upload.videoId),
    }));
  }

  private async reserve(
    payer: Payer,
    channelId: string,
    videos: readonly PlannedVideo[],
    call: Call,
  ): Promise<Pick<CallPlan, 'reservation' | 'quota'>> {
    const required = requiredCount(videos);
    // Nothing to hold: the state is read without waiting for the organization's lock and without leaving a row.
    if (required === 0)
      return { reservation: undefined, quota: await call.within(this.quota.state(payer.organizationId)) };
    const buffered = await this.hold(payer, channelId, required, call);
    if (buffered.reservation) return buffered;
    const { limit, used, reserved } = buffered.quota;
    throw new PlanLimitExceededError(buffered.quota, required, limitThatFits(videos, limit - used - reserved));
  }

  /**
   * Holds quota for the length of a call; without a reservation when there is not enough.
   *
   * @throws CallEnded when the call ends first; what is granted after that is released
   */
  private async hold(
    payer: Payer,
    channelId: string,
    required: number,
    call: Call,
  ): Promise<Pick<CallPlan, 'reservation' | 'quota'>> {
    const leaseSeconds = this.environment.REQUEST_DEADLINE_SECONDS + LEASE_MARGIN_SECONDS;
    const leaseEndsAtMs = performance.now() + leaseSeconds * 1000;
    const reserving = this.quota
      .reserve({ ...payer, channelId, required, leaseSeconds })
      .then(({ quota, ...buffered }) => ({
        reservation: buffered.granted ? { id: buffered.id, leaseEndsAtMs } : undefined,
        quota,
      }));
    try {
      return await call.within(reserving);
    } catch (error) {
      if (error instanceof CallEnded)
        void this.untilIdle(
          reserving.then(
            (late) => this.settle(late.reservation, 0),
            () => undefined,
          ),
        );
      throw error;
    }
  }

  private async settle(reservation: CallPlan['reservation'], fetched: number): Promise<void> {
    if (reservation) await this.quota.settleWithRetry(reservation.id, fetched, reservation.leaseEndsAtMs);
  }
}
