import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChannelNotFoundError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import type { JobDto, JobRequestDto } from '../../../jobs/dto/job.dto.js';
import { isFinished } from '../../../jobs/job.js';
import type { JobWorker } from '../../../jobs/job-worker.js';
import type { JobsService } from '../../../jobs/jobs.service.js';
import type { Payer } from '../../../quota/quota.service.js';
import { CommandStopped } from '../output.js';
import { ArchiveFiles, type ArchiveOptions, type ArchiveSummary } from './archive-files.js';

/** How often the job is looked at. */
const INTERVAL_MS = 500;
/** A job that does nothing for so long only waits to try failed videos again. */
const WAIT_SECONDS_MAX = 300;
/** A shorter pause between two slices is not worth a report. */
const PAUSE_SECONDS_MIN = 5;
const ENTRIES_PER_READ = 50;

/** The services that the command uses. */
export interface ArchiveServices {
  jobs: JobsService;
  worker: JobWorker;
  payer: Payer;
}

interface ArchiveRequest extends ArchiveOptions {
  /** The channel as the caller names it. */
  reference: string;
}

/** The state of an archive after a run. */
export interface ArchiveResult {
  channel: Channel;
  /** The number of files that the run has written. */
  written: number;
  /** Of the videos in the index. */
  summary: ArchiveSummary;
  /** Videos that are tried again later. */
  pending: number;
  /** Seconds until then. */
  retryAfterSeconds: number;
}

/**
 * Runs an archive job in this process and writes its results to a directory. A job that was stopped continues, and after a
 * completed one a job for the newer uploads follows.
 *
 * @param stop aborts with the exit code of the command as its reason
 * @param report shows a line about the progress
 * @throws CommandStopped | ChannelNotFoundError, and Error when the directory has something else or cannot be written
 */
export async function archiveChannel(
  request: ArchiveRequest,
  services: ArchiveServices,
  stop: AbortSignal,
  report: (line: string) => void,
): Promise<ArchiveResult> {
  const files = await ArchiveFiles.open(request);
  const job = await startJob(request, files.since, services);
  return new ArchiveRun(job, services, files, report).untilEnd(stop);
}

/** Creates a job, or continues the one that an earlier run of the same command has begun. */
async function startJob(
  { reference, out, languages, limit }: ArchiveRequest,
  since: string | null,
  { jobs, payer }: ArchiveServices,
): Promise<JobDto> {
  const request: JobRequestDto = { channel: reference, languages, limit, since, onQuota: 'pause' };
  const key = createHash('sha256')
    .update(JSON.stringify([resolve(out), request]))
    .digest('hex');
  const job = await jobs.create(request, payer, key);
  const { id, state, expiresAt } = job;
  if (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) {
    await jobs.delete(payer.organizationId, id);
    return jobs.create(request, payer, key);
  }
  return state === 'paused' || state === 'canceled' || state === 'failed' ? jobs.resume(payer.organizationId, id) : job;
}

/** The job of one run of the command. */
class ArchiveRun {
  private after = 0;

  constructor(
    private job: JobDto,
    private readonly services: ArchiveServices,
    private readonly files: ArchiveFiles,
    private readonly report: (line: string) => void,
  ) {}

  async untilEnd(stop: AbortSignal): Promise<ArchiveResult> {
    const { jobs, payer } = this.services;
    try {
      const retryAfterSeconds = await this.follow(stop);
      await this.stopJob();
      await this.takeResults();
      const { id, state, reason, channel, summary: counts } = this.job;
      const summary = channel && (await this.files.saveIndex(channel, state === 'completed'));
      if (state === 'completed' || reason === 'channel_not_found') await jobs.delete(payer.organizationId, id);
      if (reason === 'channel_not_found') throw new ChannelNotFoundError();
      if (stop.aborted || !channel || !summary) {
        const facts = `${counts.succeeded} of ${counts.total} videos have a file`;
        const exitCode = stop.aborted ? Number(stop.reason) : 1;
        throw new CommandStopped(`Stopped: ${facts}. Run the same command again to continue.`, exitCode);
      }
      return { channel, written: this.files.written, summary, pending: counts.pending, retryAfterSeconds };
    } finally {
      // Also after an error, so that the job goes on with the next run only.
      await this.stopJob().catch(() => undefined);
    }
  }

  /**
   * Writes results as they are stored, until the job ends or only waits to try videos again.
   *
   * @returns the seconds until then
   */
  private async follow(stop: AbortSignal): Promise<number> {
    while (!stop.aborted) {
      await this.takeResults();
      const { state, checkAgainSeconds } = this.job;
      if (isFinished(state)) return 0;
      if (state === 'running' && (checkAgainSeconds ?? 0) > WAIT_SECONDS_MAX) return checkAgainSeconds ?? 0;
      if (this.job.channel) this.report(progressOf(this.job));
      await sleep(INTERVAL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
    return 0;
  }

  /** Writes the results that follow those which are written. */
  private async takeResults(): Promise<void> {
    const { jobs, payer } = this.services;
    for (;;) {
      const page = { limit: ENTRIES_PER_READ, after: this.after };
      const { job, entries } = await jobs.results(payer.organizationId, this.job.id, page);
      this.job = job;
      if (job.channel) this.files.check(job.channel);
      for (const entry of entries) {
        await this.files.add(entry, job.summary.total);
        this.after = entry.position;
      }
      if (entries.length === 0) return;
      this.report(progressOf(job));
    }
  }

  /** Ends the work on the job. What its running slice has fetched is stored. */
  private async stopJob(): Promise<void> {
    const { jobs, payer, worker } = this.services;
    await worker.close();
    const { id, state } = await jobs.get(payer.organizationId, this.job.id);
    if (!isFinished(state)) await jobs.cancel(payer.organizationId, id);
  }
}

const BAR_CHARACTERS = 20;

/** A line about the progress of a job. */
export function progressOf({ state, reason, checkAgainSeconds, summary }: JobDto): string {
  const { total, succeeded, failed } = summary;
  if (checkAgainSeconds !== null && checkAgainSeconds >= PAUSE_SECONDS_MIN) {
    const blocks = reason === 'upstream_blocked' ? 'blocks the requests from' : 'does not serve';
    return `YouTube ${blocks} this address: the next attempt is in ${checkAgainSeconds} s`;
  }
  if (state !== 'running') return `Listing uploads: ${total}`;
  const done = succeeded + failed;
  const bar = '#'.repeat(Math.floor((done / Math.max(1, total)) * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS, '-');
  return `[${bar}] ${done} of ${total} videos, ${failed} without a transcript`;
}
