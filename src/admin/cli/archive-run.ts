import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, VideoTranscript } from '@channel-transcripts/client';
import { ChannelNotFoundError, PlaylistNotFoundError } from '../../domain/errors.js';
import { isFinished } from '../../jobs/job.js';
import { canPass, uploadAgeSeconds } from '../../transcripts/finality.js';
import {
  archiveForm,
  ArchiveFiles,
  ENTRIES_PER_READ,
  INTERVAL_MS,
  labelsOf,
  listNamed,
  textsOf,
  type ArchiveForm,
  type ArchiveOptions,
} from './archive-files.js';
import { findFiles } from './file-names.js';
import { resultOf } from './folder-result.js';
import { unless, type LocalService } from './local-service.js';
import type { CommandResult } from './output.js';
import { QuotaNotice } from './quota-notice.js';

/** A job that does nothing for so long only waits to try failed videos again. */
const WAIT_SECONDS_MAX = 300;

/** The options of the command. */
export type ArchiveFlags = { out: string; limit?: number | undefined; keep?: true } & Partial<ArchiveForm>;

/**
 * Runs an archive job in this process and writes its results to a directory, without reading a video that has a file there.
 *
 * @param reference the channel or the playlist as the caller names it
 * @param stop ends the run early
 * @param report shows a line about the progress instead of the one before, or a line that stays
 * @throws ChannelTranscriptsError | ChannelNotFoundError | PlaylistNotFoundError, and Error when the run was stopped or the directory
 * has something else or cannot be written
 */
export async function archiveList(
  reference: string,
  { out, limit, keep, ...given }: ArchiveFlags,
  service: LocalService,
  stop: AbortSignal,
  report: (line: string, stays?: boolean) => void,
): Promise<CommandResult> {
  const options = { out, form: archiveForm(given) };
  const files = await ArchiveFiles.open(options, await findFiles(out, options.form.format));
  const run = new ArchiveRun(options, service, files, report);
  await run.takeUnfinished();
  // The library gets every text, also of videos that have a file.
  if (!keep) service.isElsewhere((videoId) => files.isDone(videoId));
  const wanted = {
    ...textsOf(options.form),
    ...(limit !== undefined && { limit }),
    ...(keep && { keep }),
    labels: labelsOf(out),
  };
  const job = await service.client.jobs.create(listNamed(reference), wanted);
  service.startWork();
  return run.untilEnd(job, stop);
}

/** One run of the command. */
class ArchiveRun {
  private readonly quota: QuotaNotice;
  /** The place after the results of a job that are written; none until the index marks the directory. */
  private readonly places = new Map<string, string>();

  constructor(
    private readonly options: ArchiveOptions,
    private readonly service: LocalService,
    private readonly files: ArchiveFiles,
    private readonly report: (line: string, stays?: boolean) => void,
  ) {
    this.quota = new QuotaNotice(service.client, report);
  }

  /** Writes what a killed run has fetched, and deletes the jobs that runs for this directory have left. */
  async takeUnfinished(): Promise<void> {
    const { jobs } = this.service.client;
    const label = `directory:${labelsOf(this.options.out).directory}`;
    const id = this.files.unfinishedJob;
    const left = id === null ? undefined : await jobs.get(id).catch(unless('job_not_found'));
    if (left) {
      await this.takeResults(left).catch(unless('results_expired'));
      await jobs.delete(left.id);
    }
    for await (const job of jobs.list({ label })) await jobs.delete(job.id);
  }

  async untilEnd(created: Job, stop: AbortSignal): Promise<CommandResult> {
    const { jobs } = this.service.client;
    const { out } = this.options;
    await this.follow(created, stop).catch(async (error: unknown) => {
      // What is fetched and not written is written by the next run. The first error says why this one ends.
      await this.service.stopWork();
      await jobs.cancel(created.id).catch(() => undefined);
      throw error;
    });
    await this.service.stopWork();
    const job = await this.takeResults(await jobs.get(created.id));
    const { reason, channel, playlist } = job;
    const pending = await this.service.awaitedVideos(job.id);
    const tried = pending.flatMap(({ videoId, code }) => (code === null ? [] : [{ videoId, code }]));
    for (const video of tried) this.files.addLate(video);
    if (channel ?? playlist) await this.files.save(job, { unfinishedJob: null });
    await jobs.delete(job.id);
    if (reason === 'channel_not_found') throw new ChannelNotFoundError();
    if (reason === 'playlist_not_found') throw new PlaylistNotFoundError();
    const { complete } = this.files.counts();
    if (stop.aborted || !(channel ?? playlist))
      throw new Error(`Stopped: ${complete} videos have a file. Run the same command again to continue.`);
    const isIncomplete = reason === 'list_incomplete';
    const untried = pending.length - tried.length;
    const state = { directory: out, files: this.files, late: this.files.late(), untried, isIncomplete };
    return resultOf([{ ...state, source: { channel, playlist }, reference: job.id }], out);
  }

  /** Writes results as they are stored, until the job ends or only waits to try videos or the list again. */
  private async follow(created: Job, stop: AbortSignal): Promise<void> {
    let job = created;
    while (!stop.aborted) {
      job = await this.takeResults(job);
      const { state, reason, checkAgainSeconds } = job;
      const waits = state === 'running' || reason === 'list_incomplete';
      if (isFinished(state) || (waits && (checkAgainSeconds ?? 0) > WAIT_SECONDS_MAX)) return;
      await this.quota.update(job);
      this.report(progressOf(job));
      await sleep(INTERVAL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
  }

  /** Writes the results that were not written yet. @returns the job as it is then */
  private async takeResults(job: Job): Promise<Job> {
    for (;;) {
      const after = this.places.get(job.id) ?? '0';
      const parameters = { path: { id: job.id }, query: { limit: ENTRIES_PER_READ, after } };
      const { results, next, job: read } = await this.service.client.call('getJobResults', parameters);
      if (!this.places.has(job.id) && (read.channel ?? read.playlist)) {
        await this.files.save(read, { unfinishedJob: read.id });
        this.places.set(job.id, after);
      }
      for (const { position, ...entry } of results) await this.files.add(entry, position, mayPass);
      if (results.length === 0 || next === null) return read;
      this.places.set(job.id, next);
    }
  }
}

/** Whether a later run tries a video again. */
function mayPass({ metadata, error }: VideoTranscript): boolean {
  return error !== undefined && canPass(error.code, uploadAgeSeconds(metadata, Date.now()));
}

const BAR_CHARACTERS = 20;

/** The total of a job grows while the uploads are listed. */
function progressOf({ state, reason, summary: { total, succeeded, failed } }: Job): string {
  const done = succeeded + failed;
  const bar = '#'.repeat(Math.floor((done / Math.max(1, total)) * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS, '-');
  return `[${bar}] ${reason ?? state}: ${done} of ${total} videos, ${failed} without a transcript`;
}
