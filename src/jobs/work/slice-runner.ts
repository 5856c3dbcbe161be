import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Registry, type Counter } from 'prom-client';
import { Environment } from '../../config/environment.js';
import { isDatabaseUnavailable, sqlStateOf } from '../../database/database-errors.js';
import { DomainError } from '../../domain/errors.js';
import { planIncludes } from '../../domain/plan.js';
import { createCounter } from '../../observability/metrics-registry.js';
import { failSpan, inRootSpan } from '../../observability/tracing/tracer.js';
import { QuotaService } from '../../quota/quota.service.js';
import { retryDelayMs } from '../../quota/settlement-retries.js';
import { ContinuationRejectedError } from '../../platform/video-platform.js';
import { addToSummary, emptySummary } from '../../transcripts/delivery/transcript-events.js';
import { TranscriptMetrics } from '../../transcripts/transcript-metrics.js';
import type { ChangedJob } from '../job-row.js';
import { logFailure, type NoList, readList } from './list-reading.js';
import { SliceReader, type ReadSlice } from './slice-reader.js';
import { SliceRepository } from './slice.repository.js';
import { SLICE_EXPIRED, type ClaimedSlice, type ListedPage, type SliceOutcome } from './slice.js';

/**
 * `committed` slices are stored. One that `lost` its claim, or that `expired` with its reservation, is not stored and not
 * charged; neither is one that ended with an `error`.
 */
const SLICE_RESULTS = ['committed', 'lost', 'expired', 'error'] as const;

/** What a slice has stored; `changed` is undefined when its claim was lost. */
interface Stored {
  changed: ChangedJob | undefined;
  counts: Readonly<Record<string, number>>;
}

/** Runs claimed slices: reads what is next and stores it. */
@Injectable()
export class SliceRunner {
  private readonly logger = new Logger(SliceRunner.name);
  private readonly slices: Counter<'result'>;

  constructor(
    private readonly reader: SliceReader,
    private readonly store: SliceRepository,
    private readonly quota: QuotaService,
    private readonly entries: TranscriptMetrics,
    private readonly environment: Environment,
    registry: Registry,
  ) {
    const help = 'Slices of archive jobs and of subscriptions that this process ran.';
    this.slices = createCounter(registry, 'ct_job_slices_total', help, { result: SLICE_RESULTS });
  }

  /**
   * Runs a slice. Never rejects.
   *
   * @param stop ends the reading; what was read is stored
   */
  run(slice: ClaimedSlice, stop: AbortSignal): Promise<void> {
    const { job, organizationId, kind } = slice;
    const startedAtMs = performance.now();
    return inRootSpan('jobs.slice', { 'jobs.id': job.id, 'jobs.slice': kind }, async (span) => {
      try {
        const { changed, counts } = await this.step(slice, stop);
        const result = changed ? 'committed' : 'lost';
        this.slices.inc({ result });
        span.setAttribute('jobs.result', result);
        const durationMs = Math.round(performance.now() - startedAtMs);
        const facts = { jobId: job.id, organizationId, slice: kind, result, durationMs, counts };
        this.logger.log({ event: 'slice_finished', ...facts });
      } catch (error) {
        failSpan(span, error instanceof DomainError ? error.code : '_OTHER');
        if (!stop.aborted) this.reportFailure(slice, error);
        const restartList = error instanceof ContinuationRejectedError;
        // Without the database its claim ends by itself.
        await this.end(slice, { type: stop.aborted ? 'stopped' : 'failed', restartList }).catch(() => undefined);
      }
    });
  }

  private async step(slice: ClaimedSlice, stop: AbortSignal): Promise<Stored> {
    if (slice.plan === null) return this.end(slice, { type: 'organization_deleted' });
    const feature = slice.isSubscription ? 'channel_subscriptions' : 'channel_archives';
    if (!planIncludes(slice.plan, feature)) return this.end(slice, { type: 'plan_excludes' });
    const read = await this.read(slice, stop);
    if ('results' in read) return this.commit(slice, read, stop);
    if ('type' in read) return this.end(slice, read);
    return { changed: await this.store.commitPage(slice, read), counts: { listed: read.uploads.length } };
  }

  /** Reads what the slice is about. Resolves to why there is nothing to store. */
  private async read(slice: ClaimedSlice, stop: AbortSignal): Promise<ReadSlice | ListedPage | SliceOutcome | NoList> {
    if (slice.kind === 'videos') return this.reader.videos(slice, stop);
    const options = { organizationId: slice.organizationId, responseEnd: stop, background: true };
    return readList(this.environment.REQUEST_DEADLINE_SECONDS, options, (call) => this.reader.page(slice, call));
  }

  private async end(slice: ClaimedSlice, outcome: SliceOutcome): Promise<Stored> {
    return { changed: await this.store.commitSlice(slice, outcome), counts: {} };
  }

  private async commit(slice: ClaimedSlice, read: ReadSlice, stop: AbortSignal): Promise<Stored> {
    const { reservation } = read.results;
    const changed = await this.storeWithRetry(slice, read, stop).catch((error: unknown) => {
      // Whichever of the two settlements comes first counts, should the database still execute the statement.
      this.reader.release(read.results);
      throw error;
    });
    if (reservation) this.quota.countSettlement(changed?.charged ?? 0);
    const summary = emptySummary();
    for (const entry of read.decided) {
      addToSummary(summary, entry);
      if (changed) this.entries.entry(entry);
    }
    const { succeeded, failed, cached, fetched } = summary;
    return { changed, counts: { succeeded, failed, cached, fetched, pending: read.pending } };
  }

  /** Retries while the reservation lives: the database may be unavailable for a moment. */
  private async storeWithRetry(slice: ClaimedSlice, { outcome, results }: ReadSlice, stop: AbortSignal) {
    const untilMs =
      results.reservation?.leaseEndsAtMs ?? performance.now() + this.environment.REQUEST_DEADLINE_SECONDS * 1000;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.store.commitSlice(slice, outcome, results);
      } catch (error) {
        const delayMs = retryDelayMs(attempt);
        if (stop.aborted || !isDatabaseUnavailable(error) || performance.now() + delayMs > untilMs) throw error;
        const facts = { jobId: slice.job.id, attempt, delayMs, cause: String(error) };
        this.logger.warn({ event: 'slice_commit_retried', ...facts });
        await sleep(delayMs, undefined, { signal: stop }).catch(() => undefined);
      }
    }
  }

  private reportFailure({ job, organizationId }: ClaimedSlice, error: unknown): void {
    this.slices.inc({ result: sqlStateOf(error) === SLICE_EXPIRED ? 'expired' : 'error' });
    logFailure(this.logger, { event: 'slice_failed', jobId: job.id, organizationId }, error);
  }
}
