import { Injectable, Logger } from '@nestjs/common';
import { PlanLimitExceededError } from '../../domain/errors.js';
import { languageChoice } from '../../domain/language-codes.js';
import type { Channel, Upload } from '../../domain/transcript.js';
import { VideoPlatform, type UploadsListPage } from '../../platform/video-platform.js';
import { QuotaService } from '../../quota/quota.service.js';
import { TranscriptCache } from '../../transcripts/cache/transcript-cache.js';
import { keptText, type KeptText } from '../../transcripts/kept/kept-text.js';
import { KeptTexts } from '../../transcripts/kept/kept-texts.js';
import type { TranscriptText } from '../../transcripts/cache/transcript-text.js';
import type { Call } from '../../transcripts/call.js';
import { GzipMember } from '../../transcripts/cache/gzip-member.js';
import { isPublishedSince, statedAgeSecondsMin } from '../../transcripts/cache/lifetimes.js';
import { archiveRetry, followedRetry } from '../../transcripts/finality.js';
import { entryJson } from '../../transcripts/formats/json.js';
import { ChannelUploads } from '../../transcripts/sources/channel-uploads.js';
import { playlistId } from '../../transcripts/sources/playlist-source.js';
import { isOfKinds, isPublishedAfter } from '../../transcripts/sources/counted-list.js';
import type { VideoList } from '../../transcripts/sources/video-list.js';
import type { CallPlan } from '../../transcripts/call-plan.js';
import type { DeliveryRules } from '../../transcripts/delivery/transcript-delivery.js';
import type { Entry } from '../../transcripts/delivery/transcript-events.js';
import { TranscriptsService } from '../../transcripts/transcripts.service.js';
import type { JobDto } from '../dto/job.dto.js';
import { SliceRepository } from './slice.repository.js';
import {
  dispositionOf,
  isBlocked,
  outcomeOf,
  type ClaimedSlice,
  type Disposition,
  type ListedPage,
  type PendingVideo,
  type ReadVideo,
  type SliceOutcome,
  type UploadEvent,
  type VideoChange,
  type VideoResults,
} from './slice.js';

/** Few enough for a slice to end within the deadline of a call, and for organizations to take turns often. */
const SLICE_VIDEOS = 25;
/** Without quota, so many pending videos are looked up in the cache, in parts that are as large as a call. */
const FREE_VIDEOS_LOOKED_UP = 1_000;
const FREE_VIDEOS_PART = 100;

const logger = new Logger('SliceReader');

/** The results are counted and settled when they are stored. A bug is tried again, so that it does not hold up other videos. */
const RULES: DeliveryRules = {
  settle: () => Promise.resolve(),
  onEntry: () => undefined,
  onBug: (upload, error) => {
    const stack = error instanceof Error ? error.stack : undefined;
    logger.error({ event: 'job_video_failed', videoId: upload.videoId, cause: String(error), stack });
    return { code: 'upstream_failure', message: 'The service failed to read this video. Retry later.' };
  },
};

/** A slice of videos that was read and is not stored yet. */
export interface ReadSlice {
  outcome: SliceOutcome;
  results: VideoResults;
  decided: Entry[];
  pending: number;
}

interface Decision extends ReadVideo {
  text: TranscriptText;
  disposition: Disposition;
}

/** Reads what a slice is about: a page of the uploads, or the next videos as a call does. */
@Injectable()
export class SliceReader {
  constructor(
    private readonly store: SliceRepository,
    private readonly channels: ChannelUploads,
    private readonly platform: VideoPlatform,
    private readonly transcripts: TranscriptsService,
    private readonly cache: TranscriptCache,
    private readonly quota: QuotaService,
    private readonly texts: KeptTexts,
  ) {}

  /**
   * Reads one page of the uploads.
   *
   * @throws ChannelNotFoundError | PlaylistNotFoundError when there is no list
   * @throws UpstreamError | CallEnded | ContinuationRejectedError when it could not be read
   */
  async page({ job, continuation, nowMs }: ClaimedSlice, call: Call): Promise<ListedPage> {
    const page = await this.listedPage(job, continuation ?? undefined, call);
    const part = requestedPart(page, job.request, nowMs);
    if (job.channel === null || job.summary.total === 0) return { ...page, ...part };
    // What is newer than what was listed first was published since then.
    const startedAtMs = Date.parse(job.startedAt ?? '');
    const listed = await this.store.firstUploads(job.id);
    const ages = listed.flatMap((upload) => statedAgeSecondsMin(upload, startedAtMs) ?? []);
    const sinceMs = startedAtMs - (ages.length > 0 ? Math.min(...ages) : 0) * 1000;
    const uploads = part.uploads.filter((upload) => !isPublishedSince(upload, sinceMs, nowMs));
    return { ...page, ...part, uploads };
  }

  private async listedPage(job: JobDto, continuation: string | undefined, call: Call): Promise<ListedPage> {
    const { channel: reference, playlist } = job.request;
    if (playlist !== null) {
      const page = await this.platform.playlist(playlistId(playlist, 'playlist'), continuation, call);
      return { ...page, channel: null, listEnd: listEndOf(page) };
    }
    const channel = job.channel ?? (await this.channels.find(reference ?? '', call));
    const read = await this.platform.uploads(channel.id, continuation, call);
    const page = continuation === undefined ? await this.platform.describe(channel.id, read, call) : read;
    return { ...page, channel, playlist: null, listEnd: listEndOf(page) };
  }

  /** Plans, reserves and fetches the next videos. Resolves to why none is read. */
  async videos(slice: ClaimedSlice, stop: AbortSignal): Promise<ReadSlice | SliceOutcome> {
    const startedAtMs = performance.now();
    // After a block, one video finds out whether the platform serves the service again.
    const probes = slice.job.reason === 'upstream_blocked';
    let videos = await this.store.pendingVideos(slice.job.id, { count: probes ? 1 : SLICE_VIDEOS, random: probes });
    if (videos.length === 0) return { type: 'unserved' };
    let plan = await this.plan(slice, videos, stop);
    if ('type' in plan && plan.type === 'without_quota') {
      videos = await this.freeVideos(slice);
      if (videos.length > 0) plan = await this.plan(slice, videos, stop);
    }
    if ('type' in plan) return plan;
    try {
      const kept: KeptText[] = [];
      const read = await this.read(plan, videos, {
        withPositions: !slice.isSubscription,
        ...(slice.job.request.keep && { onKept: (text) => void kept.push(text) }),
      });
      const stopped = stop.aborted;
      const retry = slice.isSubscription ? followedRetry : archiveRetry;
      const conditions = { blocked: isBlocked(read), stopped, nowMs: slice.nowMs, retry };
      const decisions = read.map((video) => ({ ...video, disposition: dispositionOf(video, conditions) }));
      const durationSeconds = (performance.now() - startedAtMs) / 1000;
      const isFree = plan.reservation === undefined;
      const outcome: SliceOutcome = isFree ? { type: 'unserved' } : outcomeOf(read, { stopped, durationSeconds });
      const decided = decisions.flatMap(({ entry, disposition }) => (disposition === 'decided' ? [entry] : []));
      const results = {
        reservation: plan.reservation,
        ...storedForms(decisions, slice),
        kept: slice.job.request.keep ? kept : undefined,
      };
      return { outcome, results, decided, pending: read.length - decided.length };
    } catch (error) {
      this.release(plan);
      throw error;
    }
  }

  /** Settles the reservation of a slice that is not stored without a charge. An earlier settlement stays. */
  release({ reservation }: Pick<CallPlan, 'reservation'>): void {
    if (reservation) void this.quota.settleWithRetry(reservation, 0);
  }

  /** Plans as many of the videos as the quota allows. */
  private async plan(
    slice: ClaimedSlice,
    videos: readonly PendingVideo[],
    stop: AbortSignal,
  ): Promise<CallPlan | SliceOutcome> {
    const { job, organizationId, keyId, keeps } = slice;
    const again = triedAgain(videos);
    const source = () => Promise.resolve({ ...headerOf(job), uploads: videos.map(requestedUpload) });
    const payer = { organizationId, keyId, requestId: job.id, keeps };
    const options = { startedAtMs: performance.now(), responseEnd: stop, background: true };
    try {
      return await this.transcripts.prepare({ source, ...job.request, again }, payer, options);
    } catch (error) {
      if (!(error instanceof PlanLimitExceededError)) throw error;
      const { used, limit } = error.decided;
      if (error.fitting === 0) return { type: used < limit ? 'quota_reserved' : 'without_quota' };
      return this.plan(slice, videos.slice(0, error.fitting), stop);
    }
  }

  /** Some pending videos that cost nothing: other organizations have paid for them, or it is known why they have no text. */
  private async freeVideos({ job: { id, request }, organizationId, keeps }: ClaimedSlice): Promise<PendingVideo[]> {
    // Another choice each time, so that of a long list each one has its turn.
    const pending = await this.store.pendingVideos(id, { count: FREE_VIDEOS_LOOKED_UP, random: true });
    for (let from = 0; from < pending.length; from += FREE_VIDEOS_PART) {
      const part = pending.slice(from, from + FREE_VIDEOS_PART);
      const ids = part.map(({ upload }) => upload.videoId);
      const choice = languageChoice(request);
      const cached = await this.cache.getMany(ids, choice, triedAgain(part));
      const kept = await this.texts.find(organizationId, keeps ? ids : [], choice);
      const isKnown = (video: PendingVideo, index: number): boolean =>
        cached[index] !== undefined || kept.has(video.upload.videoId) || requestedUpload(video).failure !== null;
      const free = part.filter(isKnown);
      if (free.length > 0) return free.slice(0, SLICE_VIDEOS).sort((one, other) => one.position - other.position);
    }
    return [];
  }

  /**
   * Fetches the videos of a plan, which is settled when its slice is stored.
   *
   * @param options.withPositions whether the entries state their place in the list, which a feed does not have
   * @param options.onKept gets each text as it is kept
   */
  private async read(
    plan: CallPlan,
    videos: readonly PendingVideo[],
    { withPositions, onKept }: { withPositions: boolean; onKept?: (text: KeptText) => void },
  ): Promise<Omit<Decision, 'disposition'>[]> {
    const texts = new Map<string, Parameters<typeof keptText>[1]>();
    const onText =
      onKept && (({ videoId }: Upload, outcome: Parameters<typeof keptText>[1]) => void texts.set(videoId, outcome));
    const delivery = this.transcripts.deliver(plan, { ...RULES, ...(onText && { onText }) });
    const listedBy = plan.header.type === 'channel' ? plan.header.channel : null;
    const positions = new Map(videos.map(({ position, upload }) => [upload.videoId, position]));
    const entries = new Map<string, Pick<Decision, 'entry' | 'text'>>();
    for await (const event of delivery.events('as-finished')) {
      if (event.type !== 'result') continue;
      // Joined at once: the text belongs to the delivery, which releases it with the next event.
      const { entry } = event;
      const outcome = texts.get(entry.videoId);
      const upload = videos.find((video) => video.upload.videoId === entry.videoId)?.upload;
      if (outcome && upload) onKept?.(await keptText(upload, outcome, plan.languages, listedBy));
      texts.delete(entry.videoId);
      entries.set(entry.videoId, {
        entry,
        text: GzipMember.join(entryJson('', entry, '', withPositions ? positions.get(entry.videoId) : undefined)),
      });
    }
    return videos.flatMap((video) => {
      const { videoId } = video.upload;
      const found = entries.get(videoId);
      return found ? [{ ...video, givenUp: delivery.givenUp.has(videoId), ...found }] : [];
    });
  }
}

/** What the videos of a job are from, as in a call, and the ledger's name of it. */
function headerOf({ channel, playlist }: JobDto): Pick<VideoList, 'header' | 'resource'> {
  if (channel) return { header: { type: 'channel', channel }, resource: channel.id };
  if (playlist) return { header: { type: 'playlist', playlist }, resource: playlist.id };
  return { header: { type: 'videos' }, resource: 'videos' };
}

/** See `ListedPage.listEnd`. Of a last page without videos it is the number of the page. */
function listEndOf({ uploads, incomplete, hidden, pages }: UploadsListPage): string | null {
  return incomplete && hidden !== null ? (uploads.at(-1)?.videoId ?? String(pages)) : null;
}

/** The uploads of a page that a request wants, each once; the list ends at `since`. */
export function requestedPart(
  { uploads, next, incomplete }: Pick<UploadsListPage, 'uploads' | 'next' | 'incomplete'>,
  request: Pick<JobDto['request'], 'since' | 'kinds' | 'publishedAfter'>,
  nowMs: number,
): Pick<UploadsListPage, 'uploads' | 'next' | 'incomplete'> {
  const end = uploads.findIndex(({ videoId }) => videoId === request.since);
  const newer = end === -1 ? uploads : uploads.slice(0, end);
  const wanted = newer.filter((upload) => isOfKinds(upload, request.kinds) && isPublishedAfter(upload, request, nowMs));
  const unique = [...new Map(wanted.map((upload) => [upload.videoId, upload])).values()];
  return { uploads: unique, next: end === -1 ? next : null, incomplete: end === -1 && incomplete };
}

function triedAgain(videos: readonly PendingVideo[]): Set<string> {
  return new Set(videos.flatMap(({ retries, upload }) => (retries > 0 ? [upload.videoId] : [])));
}

/** What the list stated may have passed when a video is tried again: a stream has ended, or members are not the only ones. */
function requestedUpload({ upload, retries }: PendingVideo): Upload {
  return retries > 0 ? { ...upload, failure: null } : upload;
}

/**
 * The changes of the videos, the joined forms of the decided ones, and what they cost.
 *
 * Each decided one of a subscription is an event.
 */
function storedForms(
  decisions: readonly Decision[],
  { isSubscription, job }: ClaimedSlice,
): Omit<VideoResults, 'reservation'> {
  const stored: Buffer[] = [];
  const videos = decisions.flatMap(({ position, entry, text, disposition }): VideoChange[] => {
    if (disposition === 'untried') return [];
    if (disposition !== 'decided')
      return [{ position, state: 'pending', code: entry.ok ? null : entry.error.code, ...disposition }];
    stored.push(text.deflated);
    const { deflated, jsonBytes: bytes, crc32: crc } = text;
    const form = {
      position,
      length: deflated.length,
      bytes,
      crc,
      ...(isSubscription && { event: uploadEvent(entry, job.channel) }),
    };
    return [entry.ok ? { ...form, state: 'succeeded', cached: entry.cached } : { ...form, state: 'failed' }];
  });
  const fetched = videos.filter((video) => video.state === 'succeeded' && !video.cached).length;
  return { fetched, videos, entries: Buffer.concat(stored) };
}

/** Text of the platform as jsonb can store it. */
const storable = (text: string): string => text.replaceAll('\0', '').toWellFormed();

export function uploadEvent(entry: Entry<unknown>, channel: Channel | null): UploadEvent {
  const { videoId, metadata } = entry;
  const { url, title, publishedAt } = metadata;
  const code = entry.ok ? null : entry.error.code;
  const named = channel && { ...channel, name: storable(channel.name) };
  return { channel: named, videoId, url, title: title && storable(title), publishedAt, code };
}
