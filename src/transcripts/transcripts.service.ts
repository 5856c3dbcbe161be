import { Injectable } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import {
  DomainError,
  InvalidApiKeyError,
  PlanLimitExceededError,
  remainingQuota,
  UpstreamError,
} from '../domain/errors.js';
import { NO_DETAILS, type Upload } from '../domain/transcript.js';
import { inSpan } from '../observability/tracing/tracer.js';
import { TranscriptCache, type CachedOutcome } from './cache/transcript-cache.js';
import {
  limitThatFits,
  requiredCount,
  type CallPlan,
  type PlannedVideo,
  type TranscriptsRequest,
} from './call-plan.js';
import { Call, CallEnded, type CallOptions } from './call.js';
import { VideoFetcher } from './fetching.js';
import { QuotaReservations, type Payer, type Settle } from './quota-reservations.js';
import { HeldTexts, ResponseMemory } from './response/response-memory.js';
import { Delivery } from './transcript-delivery.js';
import { TranscriptMetrics } from './transcript-metrics.js';

/** The use case: the transcripts of the videos that a source lists. */
@Injectable()
export class TranscriptsService {
  constructor(
    private readonly cache: TranscriptCache,
    private readonly fetcher: VideoFetcher,
    private readonly reservations: QuotaReservations,
    private readonly memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
    private readonly environment: Environment,
  ) {}

  /**
   * Opens a call and plans it: lists its videos, looks them up in the cache, and reserves quota for the rest. Everything that
   * can refuse the call happens here; when it throws, nothing was fetched and nothing is charged.
   *
   * @throws PlanLimitExceededError | UpstreamError | InvalidApiKeyError | ServiceUnavailableError, and what the source of
   * the request throws
   */
  prepare(request: TranscriptsRequest, payer: Payer, options: CallOptions): Promise<CallPlan> {
    return inSpan('transcripts.prepare', {}, async (span) => {
      this.memory.refuseWhenFull();
      const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, options);
      const plan = await this.plan(request, payer, call).catch((error: unknown) => {
        call.finish();
        throw refusalOf(error);
      });
      span.setAttributes({ 'transcripts.source': plan.header.type, 'transcripts.videos': plan.order.length });
      return plan;
    });
  }

  /**
   * Starts to fetch what the plan lacks and returns the events of the response; a failure is an entry. The reservation is
   * settled whether or not the events are read.
   *
   * @param settle called when the fetching has ended, with the number of transcripts that the call pays for; replaced by a
   * caller that settles together with changes of its own
   */
  deliver(plan: CallPlan, settle: Settle = this.reservations.settle): Delivery {
    const delivery = new Delivery(plan, this.fetcher, new HeldTexts(this.memory), this.metrics);
    delivery.settled = this.reservations.track(delivery.fetched.then((charged) => settle(plan.reservation, charged)));
    return delivery;
  }

  /** Resolves when all fetches have ended and all reservations are settled. */
  idle(): Promise<void> {
    return this.reservations.idle();
  }

  private async plan({ source, languages = [] }: TranscriptsRequest, payer: Payer, call: Call): Promise<CallPlan> {
    const { header, resource, uploads } = await source(call);
    const known = new Map(uploads.map((upload) => [upload.videoId, plannedVideo(upload)]));
    const videos = [...known.values()];
    const order = uploads.flatMap(({ videoId }) => known.get(videoId) ?? []);
    await this.lookUp(videos, languages);
    const required = requiredCount(videos);
    const { reservation, quota } = await this.reservations.reserve(payer, resource, required, call);
    if (required > 0 && !reservation) {
      const fitting = limitThatFits(order, remainingQuota(quota));
      throw new PlanLimitExceededError(quota, required, fitting, header.type === 'videos' ? 'videos' : 'limit');
    }
    return { call, header, resource, videos, order, languages, reservation, quota };
  }

  /** One cache lookup for all videos; those that the list already reports as failed need none. */
  private async lookUp(videos: readonly PlannedVideo[], languages: readonly string[]): Promise<void> {
    const wanted = videos.filter(({ outcome }) => !outcome);
    const outcomes = await this.cache.getMany(
      wanted.map(({ upload }) => upload.videoId),
      languages,
    );
    for (const [index, video] of wanted.entries()) video.outcome = outcomes[index];
    const missing = requiredCount(wanted);
    this.metrics.countLookups('transcript', true, wanted.length - missing);
    this.metrics.countLookups('transcript', false, missing);
  }
}

/** A video whose outcome is known only when the list already reports it as failed. */
function plannedVideo(upload: Upload): PlannedVideo {
  const { failure } = upload;
  const outcome: CachedOutcome | undefined = failure
    ? { ok: false, details: NO_DETAILS, failure: { code: failure } }
    : undefined;
  return { upload, outcome };
}

/** The error with which a call is refused. */
function refusalOf(error: unknown): unknown {
  if (error instanceof CallEnded) return new UpstreamError('upstream_timeout', error);
  // The organization was deleted after its key was checked.
  if (error instanceof DomainError && error.code === 'not_found') return new InvalidApiKeyError();
  return error;
}
