import { Injectable, Logger } from '@nestjs/common';
import { isDatabaseUnavailable, sqlStateOf } from '../database/database-errors.js';
import { DomainError, PlanLimitExceededError } from '../domain/errors.js';
import { NO_DETAILS, VIDEO_FAILURES, type Upload, type VideoFailureCode } from '../domain/transcript.js';
import { QuotaService } from '../quota/quota.service.js';
import type { OpenReservation, Settle } from '../transcripts/quota-reservations.js';
import type { TranscriptText } from '../transcripts/cache/transcript-text.js';
import { GzipMember } from '../transcripts/response/gzip-member.js';
import { entryJson } from '../transcripts/response/response-writer.js';
import { emptySummary, failedEntry, type Entry, type Summary } from '../transcripts/transcript-events.js';
import type { CallPlan } from '../transcripts/transcript-planner.js';
import { READING_FAILED, jobVideoFailedLine } from '../transcripts/transcript-delivery.js';
import { TranscriptsService } from '../transcripts/transcripts.service.js';
import { JobRepository } from './job.repository.js';
import {
  type ClaimedSlice,
  type Disposition,
  dispositionOf,
  endOfSlice,
  type PendingVideo,
  refusesAll,
  setback,
  type SliceEnd,
  type SliceResults,
  type SliceVideo,
  stayPaused,
  type VideoChange,
  videosOfSlice,
  withoutQuota,
} from './slice.js';

/** The results of a slice, which are not stored yet. */
export interface FetchedVideos {
  end: SliceEnd;
  results: SliceResults;
  reservations: SliceReservations;
  summary: Summary;
  /** Videos of the slice that stay pending. */
  pending: number;
  /** Why the others have failed. */
  failures: readonly VideoFailureCode[];
}

/** Reads the next videos of a job as a call does: planned, reserved and delivered by the same services. */
@Injectable()
export class VideoSlice {
  private readonly logger = new Logger(VideoSlice.name);

  constructor(
    private readonly store: JobRepository,
    private readonly transcripts: TranscriptsService,
    private readonly quota: QuotaService,
  ) {}

  /** Resolves to how the slice ends when it reads no video. */
  async run(slice: ClaimedSlice, stop: AbortSignal): Promise<FetchedVideos | SliceEnd> {
    const { job, setbacks } = slice;
    // After a block, one video finds out whether the platform serves the service again.
    const videos = await (isPausedByBlock(slice)
      ? this.store.probeVideo(job.id, setbacks)
      : this.store.pendingVideos(job.id, videosOfSlice(setbacks)));
    const [first, ...others] = videos;
    if (!first) return {};
    try {
      return await this.fetch(slice, videos, stop);
    } catch (error) {
      if (others.length > 0 || stop.aborted || !isBug(error)) throw error;
      this.logger.error(jobVideoFailedLine(first.upload.videoId, error));
      return this.failed(slice, first);
    }
  }

  private async fetch(
    slice: ClaimedSlice,
    videos: readonly PendingVideo[],
    stop: AbortSignal,
  ): Promise<FetchedVideos | SliceEnd> {
    const { setbacks, now } = slice;
    const startedAtMs = performance.now();
    const plan = await this.plan(slice, videos.map(requestedUpload), stop);
    if (!('videos' in plan)) return plan;
    const reservations = new SliceReservations(this.quota);
    try {
      const { entries, summary, givenUp } = await this.read(plan, reservations);
      if (reservations.fetched !== summary.fetched) throw new Error('The settlement does not agree with the entries.');
      const known = new Set(plan.videos.flatMap(({ upload, outcome }) => (outcome ? [upload.videoId] : [])));
      const sourceOf = (videoId: string): SliceVideo['source'] => {
        if (givenUp.has(videoId)) return 'none';
        return known.has(videoId) ? 'known' : 'platform';
      };
      const read = videos.flatMap(({ position, retries, upload: { videoId } }) => {
        const found = entries.get(videoId);
        return found ? [{ position, retries, source: sourceOf(videoId), ...found }] : [];
      });
      const stopped = stop.aborted;
      const conditions = { now, allRefused: refusesAll(read), stopped };
      const decisions = read.map((video) => ({ ...video, disposition: dispositionOf(video, conditions) }));
      const durationSeconds = (performance.now() - startedAtMs) / 1000;
      const end = endOfSlice({ videos: decisions, setbacks, paused: isPausedByBlock(slice), stopped, durationSeconds });
      return fetchedVideos(end, decisions, reservations, summary);
    } catch (error) {
      reservations.release();
      throw error;
    }
  }

  /** A video whose reading throws, even when it is read alone: this counts as a try, so that its job ends. */
  private failed(slice: ClaimedSlice, video: PendingVideo): FetchedVideos {
    const { setbacks, now } = slice;
    const { position, retries } = video;
    const entry = failedEntry(requestedUpload(video), NO_DETAILS, READING_FAILED);
    const read = { position, retries, source: 'platform' as const, ...serialized(entry) };
    const disposition = dispositionOf(read, { now, allRefused: false, stopped: false });
    const summary = { ...emptySummary(), total: 1, failed: 1 };
    const end = isPausedByBlock(slice) ? stayPaused(setback(setbacks), setbacks) : {};
    return fetchedVideos(end, [{ ...read, disposition }], new SliceReservations(this.quota), summary);
  }

  /** Plans as many of the videos as the quota allows. */
  private async plan(slice: ClaimedSlice, uploads: readonly Upload[], stop: AbortSignal): Promise<CallPlan | SliceEnd> {
    const { job, organizationId, keyId } = slice;
    const { channel } = job;
    if (!channel) throw new Error('A listed job has a channel.');
    const payer = { organizationId, keyId, requestId: job.id };
    const { languages, onQuota } = job.request;
    for (let count = uploads.length; ;) {
      const fitting = uploads.slice(0, count);
      const source = () =>
        Promise.resolve({ header: { type: 'channel' as const, channel }, resource: channel.id, uploads: fitting });
      try {
        const options = { startedAtMs: performance.now(), responseEnd: stop, background: true };
        return await this.transcripts.prepare({ source, languages }, payer, options);
      } catch (error) {
        if (!(error instanceof PlanLimitExceededError)) throw error;
        if (error.fitting === 0) return withoutQuota(error.quota, onQuota);
        count = error.fitting;
      }
    }
  }

  private async read(
    plan: CallPlan,
    reservations: SliceReservations,
  ): Promise<{ entries: Map<string, ReadEntry>; summary: Summary; givenUp: ReadonlySet<string> }> {
    const entries = new Map<string, ReadEntry>();
    const delivery = this.transcripts.deliver(plan, reservations.settle);
    for await (const event of delivery.events('as-finished')) {
      if (event.type !== 'result') continue;
      // Joined at once: the text belongs to the delivery, which releases it with the next event.
      const { entry } = event;
      entries.set(entry.videoId, serialized(entry));
    }
    return { entries, summary: delivery.summary, givenUp: delivery.givenUp };
  }
}

interface ReadEntry {
  entry: Entry;
  serialized: TranscriptText;
}

interface Decision extends ReadEntry, SliceVideo {
  position: number;
  disposition: Disposition;
}

function serialized(entry: Entry): ReadEntry {
  return { entry, serialized: GzipMember.join(entryJson('', entry, '')) };
}

function isPausedByBlock({ job }: ClaimedSlice): boolean {
  return job.reason === 'upstream_blocked';
}

/** Whether an error can be caused by a video: neither a refusal nor a failure of the database. */
function isBug(error: unknown): boolean {
  return !(error instanceof DomainError) && !isDatabaseUnavailable(error) && sqlStateOf(error) === undefined;
}

function fetchedVideos(
  end: SliceEnd,
  decisions: readonly Decision[],
  reservations: SliceReservations,
  summary: Summary,
): FetchedVideos {
  const decided = decisions.filter(({ disposition }) => disposition.kind === 'decided');
  return {
    end,
    results: { settlements: reservations.settlements, ...resultsOf(decisions) },
    reservations,
    summary,
    pending: decisions.length - decided.length,
    failures: decided.flatMap(({ entry }) => (entry.ok ? [] : [entry.error.code])),
  };
}

/** The changes of the videos, and the stored forms of the decided ones. */
function resultsOf(decisions: readonly Decision[]): Omit<SliceResults, 'settlements'> {
  const stored: Buffer[] = [];
  const videos = decisions.flatMap(({ position, entry, serialized: text, disposition }): VideoChange[] => {
    if (disposition.kind === 'retry')
      return [{ position, state: 'pending', retryAfterSeconds: disposition.afterSeconds }];
    if (disposition.kind !== 'decided') return [];
    stored.push(text.deflated);
    const form = { length: text.deflated.length, bytes: text.jsonBytes, crc: text.crc32 };
    return [
      entry.ok
        ? { position, state: 'succeeded', cached: entry.cached, ...form }
        : { position, state: 'failed', ...form },
    ];
  });
  return { videos, entries: Buffer.concat(stored) };
}

/** What the list stated may have passed when a video is tried again: a stream has ended. */
function requestedUpload({ upload, retries }: PendingVideo): Upload {
  const passed = retries > 0 && upload.failure !== null && VIDEO_FAILURES[upload.failure].retryable;
  return passed ? { ...upload, failure: null } : upload;
}

/** Collects the reservations of a slice, which are settled together with its results. */
class SliceReservations {
  private readonly collected: { reservation: OpenReservation; fetched: number }[] = [];
  private released = false;

  constructor(private readonly quota: Pick<QuotaService, 'settleWithRetry'>) {}

  readonly settle: Settle = (reservation, fetched) => {
    if (!reservation) return Promise.resolve();
    this.collected.push({ reservation, fetched });
    if (this.released) this.release();
    return Promise.resolve();
  };

  get settlements(): { id: string; fetched: number }[] {
    return this.collected.map(({ reservation: { id }, fetched }) => ({ id, fetched }));
  }

  get fetched(): number {
    return this.collected.reduce((sum, { fetched }) => sum + fetched, 0);
  }

  /** When the first of them ends, in milliseconds of `performance.now()`. */
  get leaseEndsAtMs(): number {
    return Math.min(...this.collected.map(({ reservation }) => reservation.leaseEndsAtMs));
  }

  /** Settles without a charge, also what is collected from now on. What was settled before stays. */
  release(): void {
    this.released = true;
    for (const { reservation } of this.collected.splice(0))
      void this.quota.settleWithRetry(reservation.id, 0, reservation.leaseEndsAtMs);
  }
}
