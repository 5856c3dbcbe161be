import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Environment } from '../config/environment.js';
import { isDatabaseUnavailable, sqlStateOf } from '../database/database-errors.js';
import { DomainError, InvalidApiKeyError } from '../domain/errors.js';
import { failSpan, inRootSpan } from '../observability/tracing/tracer.js';
import { QuotaService, retryDelayMs } from '../quota/quota.service.js';
import { ContinuationRejectedError } from '../platform/video-platform.js';
import { CallEnded } from '../transcripts/call.js';
import { TranscriptMetrics } from '../transcripts/transcript-metrics.js';
import { JobMetrics, type SliceResult } from './job-metrics.js';
import { JobRepository } from './job.repository.js';
import { logStateChange, type ChangedJob } from './job.js';
import { ListingSlice } from './listing-slice.js';
import { type ClaimedSlice, setback, SLICE_EXPIRED, type SliceEnd, stayPaused } from './slice.js';
import { VideoSlice, type FetchedVideos } from './video-slice.js';

/** What a slice changed; `changed` is undefined when its claim was lost. */
interface Committed {
  result: SliceResult;
  changed: ChangedJob | undefined;
  counts: Readonly<Record<string, number>>;
}

/** Runs claimed slices: reads what is next and stores it. */
@Injectable()
export class SliceRunner {
  private readonly logger = new Logger(SliceRunner.name);

  constructor(
    private readonly listing: ListingSlice,
    private readonly videos: VideoSlice,
    private readonly store: JobRepository,
    private readonly quota: QuotaService,
    private readonly metrics: JobMetrics,
    private readonly entries: TranscriptMetrics,
    private readonly environment: Environment,
  ) {}

  /**
   * Runs a slice. Never rejects.
   *
   * @param stop ends the reading; what was read is stored
   * @returns the seconds until the next slice of the job; null when it has none
   */
  run(slice: ClaimedSlice, stop: AbortSignal): Promise<number | null> {
    const { job, organizationId } = slice;
    const startedAtMs = performance.now();
    const kind = slice.listed ? 'videos' : 'listing';
    return inRootSpan('jobs.slice', { 'jobs.id': job.id, 'jobs.slice': kind }, async (span) => {
      try {
        const { result, changed, counts } = await this.step(slice, stop);
        if (changed) logStateChange(this.logger, changed);
        this.metrics.slices.inc({ result });
        span.setAttribute('jobs.result', result);
        const durationMs = Math.round(performance.now() - startedAtMs);
        this.logger.log({
          event: 'slice_finished',
          jobId: job.id,
          organizationId,
          slice: kind,
          result,
          durationMs,
          counts,
        });
        return changed?.dueInSeconds ?? null;
      } catch (error) {
        failSpan(span, error instanceof DomainError ? error.code : '_OTHER');
        this.metrics.slices.inc({ result: 'error' });
        return this.putBack(slice, error);
      }
    });
  }

  private async step(slice: ClaimedSlice, stop: AbortSignal): Promise<Committed> {
    if (slice.organizationDeleted) return this.end(slice, { change: { state: 'canceled', reason: null } });
    if (!slice.planIncludesJobs) return this.end(slice, { change: { state: 'paused', reason: 'plan_changed' } });
    if (!slice.listed) {
      const read = await this.listing.run(slice, stop);
      if (!('uploads' in read)) return this.end(slice, read);
      const changed = await this.store.commitPage(slice, read.channel, read.uploads, read.next);
      return { result: changed ? 'committed' : 'lost', changed, counts: { listed: read.uploads.length } };
    }
    const read = await this.videos.run(slice, stop).catch((error: unknown): SliceEnd => {
      if (stop.aborted) return { setbacks: slice.setbacks };
      // The organization was deleted after the slice was claimed.
      if (error instanceof InvalidApiKeyError) return { change: { state: 'canceled', reason: null } };
      throw error;
    });
    return 'results' in read ? this.commit(slice, read, stop) : this.end(slice, read);
  }

  /** Ends a slice without results. */
  private async end(slice: ClaimedSlice, end: SliceEnd): Promise<Committed> {
    const changed = await this.store.commitSlice(slice, withoutResults(slice, end));
    return { result: changed ? 'committed' : 'lost', changed, counts: {} };
  }

  /** Stores what was read, with retries while the reservations live: the database may be unavailable for a moment. */
  private async commit(slice: ClaimedSlice, read: FetchedVideos, stop: AbortSignal): Promise<Committed> {
    const { end, results, reservations, summary, pending, failures } = read;
    const ids = results.settlements.map(({ id }) => id);
    const retryUntilMs = Math.min(
      reservations.leaseEndsAtMs,
      performance.now() + this.environment.REQUEST_DEADLINE_SECONDS * 1000,
    );
    for (let attempt = 1; ; attempt++) {
      try {
        const changed = await this.store.commitSlice(slice, end, results);
        this.quota.settledElsewhere(ids, changed?.charged ?? 0);
        const { succeeded, cached, fetched } = summary;
        if (changed) {
          this.entries.countEntries('cached', cached);
          this.entries.countEntries('fetched', fetched);
          for (const code of failures) this.entries.countEntries(code, 1);
        }
        const counts = { succeeded, failed: failures.length, cached, fetched, pending };
        return { result: changed ? 'committed' : 'lost', changed, counts };
      } catch (error) {
        if (sqlStateOf(error) === SLICE_EXPIRED) {
          reservations.release();
          return { ...(await this.end(slice, setback(slice.setbacks))), result: 'expired' };
        }
        const delayMs = retryDelayMs(attempt);
        if (stop.aborted || !isDatabaseUnavailable(error) || performance.now() + delayMs > retryUntilMs) {
          // Whichever of the two settlements comes first counts, should the database still execute the statement.
          reservations.release();
          throw error;
        }
        this.logger.warn({
          event: 'slice_commit_retried',
          jobId: slice.job.id,
          attempt,
          delayMs,
          cause: String(error),
        });
        await sleep(delayMs, undefined, { signal: stop }).catch(() => undefined);
      }
    }
  }

  /** Puts a slice back after an error. Without the database its claim ends by itself. */
  private async putBack(slice: ClaimedSlice, error: unknown): Promise<number | null> {
    const { job, organizationId, setbacks } = slice;
    const restartList = error instanceof ContinuationRejectedError;
    const temporary =
      (error instanceof DomainError && error.retryable) ||
      error instanceof CallEnded ||
      restartList ||
      isDatabaseUnavailable(error);
    const line = { event: 'slice_failed', jobId: job.id, organizationId, cause: String(error) };
    if (temporary) this.logger.warn(line);
    else this.logger.error({ ...line, stack: error instanceof Error ? error.stack : undefined });
    try {
      const end = withoutResults(slice, { ...setback(setbacks), restartList });
      return (await this.store.commitSlice(slice, end))?.dueInSeconds ?? null;
    } catch {
      return null;
    }
  }
}

/** A pause for a block ends only with what the platform served. */
function withoutResults({ job, setbacks }: ClaimedSlice, end: SliceEnd): SliceEnd {
  return job.reason === 'upstream_blocked' ? stayPaused(end, setbacks) : end;
}
