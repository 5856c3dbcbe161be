import { Injectable } from '@nestjs/common';
import { withCacheBudget } from '../cache/cache-budget.js';
import { Environment } from '../config/environment.js';
import { decidingQuota, PlanLimitExceededError, remainingQuota, UpstreamError } from '../domain/errors.js';
import { NO_DETAILS, type Upload } from '../domain/transcript.js';
import type { RequestContext } from '../http/server/request-context.js';
import { inSpan } from '../observability/tracing/tracer.js';
import { QuotaService, type Payer } from '../quota/quota.service.js';
import { TranscriptCache } from './cache/transcript-cache.js';
import { KeptTexts } from './kept/kept-texts.js';
import {
  limitThatFits,
  requiredCount,
  textFormOf,
  type CallPlan,
  type PlannedVideo,
  type TranscriptsRequest,
} from './call-plan.js';
import { Call, CallEnded, type CallOptions } from './call.js';
import { VideoFetcher } from './delivery/video-fetcher.js';
import { HeldTexts, ResponseMemory } from './delivery/response-memory.js';
import { Delivery, type DeliveryRules } from './delivery/transcript-delivery.js';
import { TranscriptMetrics } from './transcript-metrics.js';

/** Seconds that a lease outlasts the deadline of its call, for the settlement. */
const LEASE_MARGIN_SECONDS = 15;

/** The use case: the transcripts of the videos that a source lists. */
@Injectable()
export class TranscriptsService {
  /** Calls that are being planned, and deliveries that are not settled. */
  private readonly unfinished = new Set<Promise<unknown>>();

  constructor(
    private readonly cache: TranscriptCache,
    private readonly kept: KeptTexts,
    private readonly fetcher: VideoFetcher,
    private readonly quota: QuotaService,
    private readonly memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
    private readonly environment: Environment,
  ) {}

  /**
   * Plans an authenticated call and starts to fetch what its plan lacks. Adds what the call is about, and the counts of its
   * entries, to its log line.
   *
   * @throws the errors that refuse the call, as `prepare`
   */
  start(request: TranscriptsRequest, context: RequestContext): Promise<Delivery> {
    return this.untilIdle(withCacheBudget(this.environment, () => this.begin(request, context)));
  }

  /**
   * Opens a call and plans it: lists its videos, looks them up in the cache, and reserves quota for the rest. Everything that
   * can refuse the call happens here; when it throws, nothing was fetched and nothing is charged.
   *
   * @throws PlanLimitExceededError | UpstreamError | InvalidApiKeyError | ServiceUnavailableError, and what the source of
   * the request throws
   */
  prepare(
    request: TranscriptsRequest,
    payer: Payer,
    options: Omit<CallOptions, 'organizationId' | 'forVideos'>,
  ): Promise<CallPlan> {
    return inSpan('transcripts.prepare', {}, async (span) => {
      const { organizationId } = payer;
      this.memory.refuseWhenFull(organizationId);
      const call = new Call(this.environment.REQUEST_DEADLINE_SECONDS, {
        ...options,
        organizationId,
        forVideos: options.background !== true,
      });
      const held = new HeldTexts(this.memory, organizationId);
      const plan = await this.plan(request, payer, call, held).catch((error: unknown) => {
        call.finish();
        held.close();
        throw error instanceof CallEnded ? new UpstreamError('upstream_timeout', error) : error;
      });
      span.setAttributes({ 'transcripts.source': plan.header.type, 'transcripts.videos': plan.order.length });
      return plan;
    });
  }

  /**
   * Starts to fetch what the plan lacks and returns the events of the response; a failure is an entry.
   *
   * @param rules by default those of a call, which settles its reservation when the fetching has ended
   */
  deliver(plan: CallPlan, rules: DeliveryRules = this.rulesOfCall(plan)): Delivery {
    const delivery = new Delivery(plan, this.fetcher, rules);
    void this.untilIdle(delivery.start());
    return delivery;
  }

  /** Resolves when all calls have been planned, their fetches have ended and their reservations are settled. */
  async idle(): Promise<void> {
    while (this.unfinished.size > 0) await Promise.allSettled(this.unfinished);
  }

  private async begin(request: TranscriptsRequest, context: RequestContext): Promise<Delivery> {
    const plan = await this.prepare(request, payerOf(context), context);
    logPlan(context.log, plan);
    const delivery = this.deliver(plan);
    context.log['counts'] = delivery.summary;
    return delivery;
  }

  private rulesOfCall({ reservation }: CallPlan): DeliveryRules {
    return {
      settle: async (fetched) => {
        if (reservation) await this.quota.settleWithRetry(reservation, fetched);
      },
      onEntry: (entry) => this.metrics.entry(entry),
      onBug: (_upload, error) => {
        throw error;
      },
    };
  }

  /** Makes `idle` wait for some work. */
  private untilIdle<T>(work: Promise<T>): Promise<T> {
    const tracked = work.finally(() => this.unfinished.delete(tracked));
    this.unfinished.add(tracked);
    return tracked;
  }

  private async plan(
    { source, include, again, ...texts }: TranscriptsRequest,
    payer: Payer,
    call: Call,
    held: HeldTexts,
  ): Promise<CallPlan> {
    const form = textFormOf(texts);
    const { header, resource, uploads, sinceFound } = await source(call);
    const known = new Map(uploads.map((upload) => [upload.videoId, plannedVideo(upload)]));
    const videos = [...known.values()];
    const order = uploads.flatMap(({ videoId }) => known.get(videoId) ?? []);
    const lookedUpAtMs = performance.now();
    await this.lookUp(videos, form.languages, again, payer);
    const required = requiredCount(videos);
    const leaseSeconds = (call.deadlineAtMs - performance.now()) / 1000 + LEASE_MARGIN_SECONDS;
    held.addCached(videos.flatMap(({ outcome }) => (outcome?.ok ? [outcome.transcript.deflated] : [])));
    const { reservation, quota } = await this.quota.reserve({ ...payer, resource, required, leaseSeconds });
    if (required > 0 && !reservation) {
      const fitting = limitThatFits(order, remainingQuota(decidingQuota(quota)));
      throw new PlanLimitExceededError(quota, required, fitting, header.type === 'videos' ? 'videos' : 'limit');
    }
    const wanted = { ...form, include: include ?? [], again };
    return { call, header, resource, videos, order, ...wanted, sinceFound, lookedUpAtMs, reservation, quota, held };
  }

  /**
   * One cache lookup for all videos; those that the list already reports as failed need none. What the organization keeps is
   * looked up for all that have no text then.
   */
  private async lookUp(
    videos: readonly PlannedVideo[],
    languages: readonly string[],
    again: ReadonlySet<string> | undefined,
    { organizationId, keeps = false }: Payer,
  ): Promise<void> {
    const wanted = videos.filter(({ outcome }) => !outcome);
    const outcomes = await this.cache.getMany(
      wanted.map(({ upload }) => upload.videoId),
      languages,
      again,
    );
    for (const [index, video] of wanted.entries()) video.outcome = outcomes[index];
    const others = keeps ? videos.filter(({ outcome }) => outcome?.ok !== true) : [];
    const ids = others.map(({ upload }) => upload.videoId);
    const kept = await this.kept.find(organizationId, ids, languages);
    for (const video of others) video.outcome = kept.get(video.upload.videoId) ?? video.outcome;
    const missing = requiredCount(wanted);
    this.metrics.countLookups('transcript', true, wanted.length - missing);
    this.metrics.countLookups('transcript', false, missing);
  }
}

/** A video whose outcome is known only when the list already reports it as failed. */
function plannedVideo(upload: Upload): PlannedVideo {
  const code = upload.failure;
  return { upload, outcome: code ? { ok: false, details: NO_DETAILS, failure: { code } } : undefined };
}

export function payerOf({ caller, requestId }: Pick<RequestContext, 'caller' | 'requestId'>): Payer {
  const { id: organizationId, keeps } = caller.organization;
  return { organizationId, keyId: caller.keyId, requestId, keeps };
}

function logPlan(log: RequestContext['log'], { header, resource, order }: CallPlan): void {
  if (header.type === 'channel') log['channelId'] = resource;
  else if (header.type === 'playlist') log['playlistId'] = resource;
  else if (resource === 'videos') log['videos'] = order.length;
  else log['videoId'] = resource;
}
