import { Injectable } from '@nestjs/common';
import {
  DomainError,
  InvalidApiKeyError,
  PlanLimitExceededError,
  remainingQuota,
  UpstreamError,
} from '../domain/errors.js';
import { NO_DETAILS, type Channel, type Upload } from '../domain/transcript.js';
import { TranscriptCache, type CachedOutcome } from './cache/transcript-cache.js';
import { CallEnded, type Call } from './call.js';
import { ChannelUploads } from './channel-uploads.js';
import { QuotaReservations, type Payer, type ReservationResult } from './quota-reservations.js';
import { ResponseMemory } from './response/response-memory.js';
import { TranscriptMetrics } from './transcript-metrics.js';

/** The parameters of a call. */
export interface TranscriptsRequest {
  /** A handle, a channel ID or the URL of a channel. */
  reference: string;
  /** The number of uploads at most, the newest ones. */
  limit: number;
  /** Languages in order of preference; the video's original language when there are none. */
  languages?: readonly string[];
}

/** One upload and its state in the cache when the call was planned. */
export interface PlannedVideo {
  upload: Upload;
  /** Undefined when the video has to be fetched, which the reservation covers. */
  outcome: CachedOutcome | undefined;
}

/** A call that can no longer be refused. `reservation` is undefined when nothing has to be fetched. */
export interface CallPlan extends ReservationResult {
  call: Call;
  payer: Payer;
  channel: Channel;
  videos: PlannedVideo[];
  languages: readonly string[];
}

/** Decides whether a call is granted: lists its videos, looks them up in the cache, and reserves quota for the rest. */
@Injectable()
export class TranscriptPlanner {
  constructor(
    private readonly channelUploads: ChannelUploads,
    private readonly cache: TranscriptCache,
    private readonly reservations: QuotaReservations,
    private readonly memory: ResponseMemory,
    private readonly metrics: TranscriptMetrics,
  ) {}

  /** @throws ChannelNotFoundError | PlanLimitExceededError | UpstreamError | InvalidApiKeyError | ServiceUnavailableError */
  async plan(request: TranscriptsRequest, payer: Payer, call: Call): Promise<CallPlan> {
    const { reference, limit, languages = [] } = request;
    this.memory.refuseWhenFull();
    try {
      const { channel, uploads } = await this.channelUploads.list(reference, limit, call);
      const videos = await this.lookUp(uploads, languages);
      const required = requiredCount(videos);
      const { reservation, quota } = await this.reservations.reserve(payer, channel.id, required, call);
      if (required > 0 && !reservation)
        throw new PlanLimitExceededError(quota, required, limitThatFits(videos, remainingQuota(quota)));
      return { call, payer, channel, videos, languages, reservation, quota };
    } catch (error) {
      if (error instanceof CallEnded) throw new UpstreamError('upstream_timeout', error);
      // The organization was deleted after its key was checked.
      if (error instanceof DomainError && error.code === 'not_found') throw new InvalidApiKeyError();
      throw error;
    }
  }

  /** One cache lookup for all videos; those that the list already reports as failed need none. */
  private async lookUp(uploads: readonly Upload[], languages: readonly string[]): Promise<PlannedVideo[]> {
    const readable = uploads.filter((upload) => upload.failure === null);
    const outcomes = await this.cache.getMany(
      readable.map((upload) => upload.videoId),
      languages,
    );
    const found = outcomes.filter((outcome) => outcome !== undefined).length;
    this.metrics.cache.transcript.count(true, found);
    this.metrics.cache.transcript.count(false, outcomes.length - found);
    const known = new Map(readable.map((upload, index) => [upload.videoId, outcomes[index]]));
    return uploads.map((upload) => ({
      upload,
      outcome: upload.failure
        ? { ok: false, details: NO_DETAILS, failure: { code: upload.failure } }
        : known.get(upload.videoId),
    }));
  }
}

/** The number of videos that have to be fetched, each of which can cost one count. */
export function requiredCount(videos: readonly { outcome: unknown }[]): number {
  return videos.filter((video) => !video.outcome).length;
}

/** The largest `limit` whose videos cost at most `remaining`; 0 when even the first costs more. */
export function limitThatFits(videos: readonly { outcome: unknown }[], remaining: number): number {
  let cost = 0;
  for (const [index, { outcome }] of videos.entries()) {
    if (!outcome) cost++;
    if (cost > Math.max(0, remaining)) return index;
  }
  return videos.length;
}
