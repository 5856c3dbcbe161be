import { Injectable } from '@nestjs/common';
import {
  DomainError,
  InvalidApiKeyError,
  PlanLimitExceededError,
  remainingQuota,
  UpstreamError,
} from '../domain/errors.js';
import { NO_DETAILS, type Upload } from '../domain/transcript.js';
import { TranscriptCache, type CachedOutcome } from './cache/transcript-cache.js';
import { CallEnded, type Call } from './call.js';
import { QuotaReservations, type Payer, type ReservationResult } from './quota-reservations.js';
import { RepeatedBodies, type RepeatedBody } from './response/repeated-bodies.js';
import { ResponseMemory } from './response/response-memory.js';
import type { ListHeader, VideoList, VideoSource } from './sources/video-list.js';
import { TranscriptMetrics } from './transcript-metrics.js';

/** The parameters of a call. */
export interface TranscriptsRequest {
  source: VideoSource;
  /** Languages in order of preference; the video's original language when there are none. */
  languages?: readonly string[] | undefined;
  /** The form of the response, when a body of that form may be repeated. */
  form?: string | undefined;
}

/** One video and its state in the cache when the call was planned. */
export interface PlannedVideo {
  upload: Upload;
  /** Undefined when the video has to be fetched, which the reservation covers. */
  outcome: CachedOutcome | undefined;
}

/** A call that can no longer be refused. `reservation` is undefined when nothing has to be fetched. */
export interface CallPlan extends ReservationResult {
  call: Call;
  payer: Payer;
  header: ListHeader;
  resource: string;
  /** Each video once. */
  videos: PlannedVideo[];
  /** The order of the entries, in which a video can occur more than once. */
  order: PlannedVideo[];
  languages: readonly string[];
  list: VideoList;
  /** The whole body, of a call that is repeated; there are then no videos to deliver. */
  body: RepeatedBody | undefined;
}

/** Decides whether a call is granted: lists its videos, looks them up in the cache, and reserves quota for the rest. */
@Injectable()
export class TranscriptPlanner {
  constructor(
    private readonly cache: TranscriptCache,
    private readonly reservations: QuotaReservations,
    private readonly memory: ResponseMemory,
    private readonly bodies: RepeatedBodies,
    private readonly metrics: TranscriptMetrics,
  ) {}

  /**
   * @throws PlanLimitExceededError | UpstreamError | InvalidApiKeyError | ServiceUnavailableError, and what the source
   * throws
   */
  async plan({ source, languages = [], form }: TranscriptsRequest, payer: Payer, call: Call): Promise<CallPlan> {
    this.memory.refuseWhenFull();
    try {
      const list = await source(call);
      const { header, resource } = list;
      const body = form === undefined ? undefined : this.bodies.find(list, form);
      if (body) this.metrics.cache.transcript.count(true, body.outcomes.length);
      const { videos, order } = body ? { videos: [], order: [] } : await this.lookUp(list, languages);
      const required = requiredCount(videos);
      const { reservation, quota } = await this.reservations.reserve(payer, resource, required, call);
      if (required > 0 && !reservation) {
        const fitting = limitThatFits(order, remainingQuota(quota));
        throw new PlanLimitExceededError(quota, required, fitting, header.type === 'videos' ? 'videos' : 'limit');
      }
      return { call, payer, header, resource, videos, order, languages, list, body, reservation, quota };
    } catch (error) {
      if (error instanceof CallEnded) throw new UpstreamError('upstream_timeout', error);
      // The organization was deleted after its key was checked.
      if (error instanceof DomainError && error.code === 'not_found') throw new InvalidApiKeyError();
      throw error;
    }
  }

  /** One cache lookup for all videos; those that the list already reports as failed need none. */
  private async lookUp(
    { uploads: listed }: VideoList,
    languages: readonly string[],
  ): Promise<Pick<CallPlan, 'videos' | 'order'>> {
    const videos = new Map<string, PlannedVideo>();
    const order = listed.map((upload) => {
      const known = videos.get(upload.videoId);
      if (known) return known;
      const video: PlannedVideo = { upload, outcome: failedInList(upload) };
      videos.set(upload.videoId, video);
      return video;
    });
    const wanted = [...videos.values()].filter(({ outcome }) => !outcome);
    const outcomes = await this.cache.getMany(
      wanted.map(({ upload }) => upload.videoId),
      languages,
    );
    let found = 0;
    for (const [index, video] of wanted.entries()) {
      video.outcome = outcomes[index];
      if (video.outcome) found++;
    }
    this.metrics.cache.transcript.count(true, found);
    this.metrics.cache.transcript.count(false, wanted.length - found);
    return { videos: [...videos.values()], order };
  }
}

/** The outcome of a video that the list already reports as failed; undefined for any other. */
function failedInList({ failure }: Upload): CachedOutcome | undefined {
  return failure ? { ok: false, details: NO_DETAILS, failure: { code: failure } } : undefined;
}

/** The number of videos that have to be fetched, each of which can cost one count. */
export function requiredCount(videos: readonly { outcome: unknown }[]): number {
  return videos.filter((video) => !video.outcome).length;
}

/**
 * The largest number of entries, from the first on, that cost at most `remaining`; 0 when even the first costs more.
 *
 * @param order in which a video that occurs more than once is the same object
 */
export function limitThatFits(order: readonly { outcome: unknown }[], remaining: number): number {
  const fetched = new Set<object>();
  for (const [index, video] of order.entries()) {
    if (!video.outcome) fetched.add(video);
    if (fetched.size > Math.max(0, remaining)) return index;
  }
  return order.length;
}
