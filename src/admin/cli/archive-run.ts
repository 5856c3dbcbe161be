import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '@channel-transcripts/client';
import { ChannelNotFoundError, counted, PlaylistNotFoundError } from '../../domain/errors.js';
import { parsePlaylistReference } from '../../domain/references/playlist-reference.js';
import { isFinished } from '../../jobs/job-states.js';
import type { AwaitedVideo } from '../../jobs/jobs.service.js';
import {
  archiveForm,
  ArchiveFiles,
  directoryKey,
  ENTRIES_PER_READ,
  INTERVAL_MS,
  nameOf,
  textsOf,
  type ArchiveForm,
  type ArchiveOptions,
} from './archive-files.js';
import type { LocalService } from './local-service.js';
import type { CommandResult } from './output.js';
import { QuotaNotice } from './quota-notice.js';

/** A job that does nothing for so long only waits to try failed videos again. */
const WAIT_SECONDS_MAX = 300;
const AWAITED_SHOWN_MAX = 10;

/** The options of the command. */
export type ArchiveFlags = Omit<ArchiveOptions, 'form'> & Partial<ArchiveForm>;

/**
 * Runs an archive job in this process and writes its results to a directory. A job that was stopped continues, and after a
 * completed one a job for the newer uploads follows.
 *
 * @param reference the channel or the playlist as the caller names it
 * @param stop ends the run early
 * @param report shows a line about the progress instead of the one before, or a line that stays
 * @throws ChannelTranscriptsError | ChannelNotFoundError | PlaylistNotFoundError, and Error when the run was stopped or the directory
 * has something else or cannot be written
 */
export async function archiveList(
  reference: string,
  { out, limit, ...form }: ArchiveFlags,
  service: LocalService,
  stop: AbortSignal,
  report: (line: string, stays?: boolean) => void,
): Promise<CommandResult> {
  const options = { out, limit, form: archiveForm(form) };
  const files = await ArchiveFiles.open(options);
  const job = await startJob(reference, options, files.since, service);
  service.startWork();
  return new ArchiveRun(job, options, service, files, report).untilEnd(stop);
}

/** Creates a job, or continues the one that an earlier run of the same command has begun. */
async function startJob(
  reference: string,
  { out, form: { format: _, ...form }, limit }: ArchiveOptions,
  since: string | null,
  { client: { jobs } }: LocalService,
): Promise<Job> {
  const isPlaylist = parsePlaylistReference(reference);
  const source = isPlaylist ? { playlist: reference } : { channel: reference };
  const idempotencyKey = directoryKey('archive', out, {
    ...source,
    ...(!isPlaylist && { since }),
    ...form,
    ...{ limit, onQuota: 'pause' },
  });
  const options = { ...textsOf(form), ...(since !== null && { since }), ...(limit !== undefined && { limit }) };
  const create = () => jobs.create(source, { ...options, idempotencyKey });
  const job = await create();
  if (job.expiresAt !== null && Date.parse(job.expiresAt) <= Date.now()) {
    await jobs.delete(job.id);
    return create();
  }
  return job.state === 'completed' ? job : jobs.resume(job.id);
}

/** The job of one run of the command. */
class ArchiveRun {
  /** The place after the results that are written; undefined until the index marks the directory. */
  private after: string | undefined;
  private readonly quota: QuotaNotice;

  constructor(
    private job: Job,
    private readonly options: ArchiveOptions,
    private readonly service: LocalService,
    private readonly files: ArchiveFiles,
    private readonly report: (line: string, stays?: boolean) => void,
  ) {
    this.quota = new QuotaNotice(service.client, report);
  }

  async untilEnd(stop: AbortSignal): Promise<CommandResult> {
    const { out, limit } = this.options;
    const retryAfterSeconds = await this.follow(stop).catch(async (error: unknown) => {
      // So that the job goes on with the next run only. The first error says why this one ends.
      await this.stopJob().catch(() => undefined);
      throw error;
    });
    await this.stopJob();
    await this.takeResults();
    const { id, state, reason, channel, playlist, summary } = this.job;
    const unknown = reason === 'channel_not_found' || reason === 'playlist_not_found';
    const awaited = await this.service.awaitedVideos(id, AWAITED_SHOWN_MAX);
    if (state === 'completed') await this.files.save(this.job, { unfinishedJob: null, limit: limit ?? null });
    if (state === 'completed' || unknown) await this.service.client.jobs.delete(id);
    if (unknown) throw reason === 'channel_not_found' ? new ChannelNotFoundError() : new PlaylistNotFoundError();
    if (stop.aborted || !(channel ?? playlist)) {
      const facts = `${summary.succeeded} of ${summary.total} videos have a file`;
      throw new Error(`Stopped: ${facts}. Run the same command again to continue.`);
    }
    const { written } = this.files;
    return {
      json: { channel, playlist, directory: out, written, summary },
      text: `${nameOf(this.job)}: ${summary.succeeded} of ${summary.total} videos have a transcript, ${counted(written, 'new file')} in ${out}.`,
      failure: unreadError(summary.pending, awaited, retryAfterSeconds),
    };
  }

  /**
   * Writes results as they are stored, until the job ends or only waits to try videos or the list again.
   *
   * @returns the seconds until then
   */
  private async follow(stop: AbortSignal): Promise<number> {
    while (!stop.aborted) {
      await this.takeResults();
      const { state, reason, checkAgainSeconds } = this.job;
      if (isFinished(state)) return 0;
      const waits = state === 'running' || reason === 'list_incomplete';
      if (waits && (checkAgainSeconds ?? 0) > WAIT_SECONDS_MAX) return checkAgainSeconds ?? 0;
      await this.quota.update(this.job);
      this.report(progressOf(this.job));
      await sleep(INTERVAL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
    return 0;
  }

  private async takeResults(): Promise<void> {
    for (;;) {
      const query = { limit: ENTRIES_PER_READ, after: this.after ?? '0' };
      const parameters = { path: { id: this.job.id }, query };
      const { results, next, job } = await this.service.client.call('getJobResults', parameters);
      this.job = job;
      if (this.after === undefined && (job.channel ?? job.playlist)) {
        await this.files.save(job, { unfinishedJob: job.id });
        this.after = '0';
      }
      for (const { position, ...entry } of results) await this.files.add(entry, position);
      if (results.length === 0 || next === null) return;
      this.after = next;
    }
  }

  /** Ends the work on the job. What its running slice has fetched is stored. */
  private async stopJob(): Promise<void> {
    await this.service.stopWork();
    const { jobs } = this.service.client;
    const { id, state } = await jobs.get(this.job.id);
    if (!isFinished(state)) await jobs.cancel(id);
  }
}

/** The failure of a run that has left videos, or the rest of the list, to a later one. */
function unreadError(pending: number, awaited: AwaitedVideo[], retryAfterSeconds: number): Error | undefined {
  if (pending === 0 && retryAfterSeconds === 0) return undefined;
  const unread = pending > 0 ? counted(pending, 'video') : 'The rest of the list';
  const reasons = awaited.map(({ videoId, code }) => `${videoId} (${code})`);
  if (reasons.length > 0 && pending > reasons.length) reasons.push(`${pending - reasons.length} more`);
  const named = reasons.length > 0 ? `: ${reasons.join(', ')}.` : '.';
  const minutes = Math.ceil(retryAfterSeconds / 60);
  return new Error(`${unread} could not be read yet. Run the same command again in ${minutes} min to retry${named}`);
}

const BAR_CHARACTERS = 20;

/** The total of a job grows while the uploads are listed. */
function progressOf({ state, reason, summary: { total, succeeded, failed } }: Job): string {
  const done = succeeded + failed;
  const bar = '#'.repeat(Math.floor((done / Math.max(1, total)) * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS, '-');
  return `[${bar}] ${reason ?? state}: ${done} of ${total} videos, ${failed} without a transcript`;
}
