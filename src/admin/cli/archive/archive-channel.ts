import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChannelNotFoundError } from '../../../domain/errors.js';
import type { Channel } from '../../../domain/transcript.js';
import { isFinished, type Job, type JobRequest } from '../../../jobs/job.js';
import type { JobWorker } from '../../../jobs/job-worker.js';
import type { JobsService } from '../../../jobs/jobs.service.js';
import type { Payer } from '../../../transcripts/quota-reservations.js';
import { CommandStopped } from '../output.js';
import { ArchiveDirectory } from './archive-directory.js';
import { ArchiveFiles, type ArchiveIndex, type IndexedVideo, readIndex } from './archive-files.js';
import type { ArchiveFormat } from './file-name.js';
import type { ProgressReport } from './progress.js';

/** How often the job is looked at. */
const INTERVAL_MS = 500;
/** A shorter pause between two slices is not worth a report. */
const PAUSE_SECONDS_MIN = 5;
const ENTRIES_PER_READ = 50;

/** The services that the command uses. */
export interface ArchiveServices {
  jobs: JobsService;
  worker: JobWorker;
  payer: Payer;
}

interface ArchiveRequest {
  /** The channel as the caller names it. */
  reference: string;
  /** The path of the directory. */
  out: string;
  format: ArchiveFormat;
  languages: string[];
  /** The number of uploads at most, the newest ones; null for all. */
  limit: number | null;
}

/** The state of an archive after a run. */
export interface ArchiveResult {
  channel: Channel;
  directory: string;
  /** The number of files that the run has written. */
  written: number;
  /** Videos that are tried again later. */
  pending: number;
  /** Seconds until then. */
  retryAfterSeconds: number;
  videos: readonly IndexedVideo[];
}

/**
 * Runs an archive job in this process and writes its results to a directory: a file for each video, and the index. A job
 * that was stopped continues, and after a completed one a job for the newer uploads follows.
 *
 * @param stop aborts with the exit code of the command as its reason
 * @throws CommandStopped | ArchiveDirectoryError | ChannelNotFoundError, and Error when the directory has something else than
 * this archive
 */
export async function archiveChannel(
  request: ArchiveRequest,
  services: ArchiveServices,
  stop: AbortSignal,
  progress: ProgressReport,
): Promise<ArchiveResult> {
  const directory = await ArchiveDirectory.open(request.out, request.format);
  const known = knownIndex(directory, request);
  const since = sinceOf(request, known);
  const { format, languages, limit } = request;
  const files = new ArchiveFiles(directory, { format, languages, limit, since }, known);
  const run = new ArchiveRun(await startJob(request, since, services), request, services, files, progress);
  return run.untilEnd(stop);
}

/** The job of one run of the command. */
class ArchiveRun {
  private prepared = false;
  private after = 0;
  private doneBefore: number | undefined;

  constructor(
    private job: Job,
    private readonly request: ArchiveRequest,
    private readonly services: ArchiveServices,
    private readonly files: ArchiveFiles,
    private readonly progress: ProgressReport,
  ) {}

  async untilEnd(stop: AbortSignal): Promise<ArchiveResult> {
    const { jobs, payer } = this.services;
    try {
      const retryAfterSeconds = await this.follow(stop);
      await this.stopJob();
      await this.takeResults();
      const { state, reason, channel, summary } = this.job;
      if (channel) await this.files.saveIndex(channel, state === 'completed');
      if (state === 'completed' || reason === 'channel_not_found') await jobs.delete(payer.organizationId, this.job.id);
      if (reason === 'channel_not_found') throw new ChannelNotFoundError();
      if (stop.aborted || !channel) throw this.stopped(stop);
      const { written, videos } = this.files;
      const { pending } = summary;
      return { channel, directory: this.request.out, written, pending, retryAfterSeconds, videos };
    } finally {
      this.progress.end();
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
    const { jobs } = this.services;
    while (!stop.aborted) {
      // Before the job is read, because a slice may end between the two.
      const awaitsRetries = await jobs.awaitsRetries(this.job.id);
      await this.takeResults();
      if (isFinished(this.job.state)) break;
      if (awaitsRetries) return this.job.checkAgainSeconds ?? 0;
      this.report();
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
      if (job.channel && !this.prepared) {
        await this.files.prepare(job.channel, this.request.out);
        this.prepared = true;
      }
      for (const entry of entries) {
        await this.files.add(entry, job.summary.total);
        this.after = entry.position;
      }
      if (entries.length === 0) return;
      this.report();
    }
  }

  /** Ends the work on the job. What its running slice has fetched is stored. */
  private async stopJob(): Promise<void> {
    const { jobs, payer, worker } = this.services;
    await worker.close();
    const job = await jobs.get(payer.organizationId, this.job.id);
    this.job = isFinished(job.state) ? job : await jobs.cancel(payer.organizationId, job.id);
  }

  private stopped(stop: AbortSignal): CommandStopped {
    const { succeeded, total } = this.job.summary;
    const state = total === 0 ? '' : ` ${succeeded} of ${total} videos have a file.`;
    const exitCode = stop.aborted ? Number(stop.reason) : 1;
    return new CommandStopped(`Stopped.${state} Run the same command again to continue.`, exitCode);
  }

  private report(): void {
    if (!this.prepared) return;
    const { state, reason, checkAgainSeconds, summary } = this.job;
    const { total, succeeded, failed } = summary;
    const done = succeeded + failed;
    this.doneBefore ??= done;
    if (checkAgainSeconds !== null && checkAgainSeconds >= PAUSE_SECONDS_MIN)
      this.progress.waiting(checkAgainSeconds, reason === 'upstream_blocked');
    else if (state === 'running')
      this.progress.fetching({ done, total, failed, doneByThisRun: done - this.doneBefore });
    else this.progress.listing(total);
  }
}

/** Creates a job, or continues the one that an earlier run of the same command has begun. */
async function startJob(
  { reference, out, languages, limit }: ArchiveRequest,
  since: string | null,
  { jobs, payer }: ArchiveServices,
): Promise<Job> {
  const request: JobRequest = { channel: reference, languages, limit, since, onQuota: 'pause' };
  const key = createHash('sha256')
    .update(JSON.stringify([resolve(out), request]))
    .digest('hex');
  const job = await jobs.create(request, payer, key);
  const { id, state, expiresAt } = job;
  if (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) {
    await jobs.delete(payer.organizationId, id);
    return jobs.create(request, payer, key);
  }
  const continues = state === 'paused' || state === 'canceled' || state === 'failed';
  return continues ? jobs.resume(payer.organizationId, id) : job;
}

/** The video above which a job takes the uploads; null for all of them. */
function sinceOf({ limit }: ArchiveRequest, known: ArchiveIndex | undefined): string | null {
  if (!known || known.limit !== limit) return null;
  return known.complete ? (known.videos[0]?.videoId ?? null) : known.since;
}

/** @throws Error when the directory has something else than this archive */
function knownIndex(directory: ArchiveDirectory, { out, format, languages }: ArchiveRequest): ArchiveIndex | undefined {
  if (directory.index === undefined) return undefined;
  const index = readIndex(directory.index);
  if (!index) throw new Error(`${directory.indexPath} is not the index of an archive. Choose another directory.`);
  if (index.format !== format)
    throw new Error(
      `${out} has files in the format ${index.format}. Use --format ${index.format} or another directory.`,
    );
  if (index.languages.join() !== languages.join()) {
    const given = index.languages.length === 0 ? 'no --languages' : `--languages ${index.languages.join()}`;
    throw new Error(`${out} has other languages. Use ${given} or another directory.`);
  }
  return index;
}
