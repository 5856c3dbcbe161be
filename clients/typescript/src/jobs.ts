import { defined, itemsOf, RETRIES_WHILE_FOLLOWING, type CallOptions, type Http } from './http.js';
import type { components } from './schema.js';
import { selectionOf, type ListOptions } from './video-options.js';

type Schemas = components['schemas'];
export type Job = Schemas['Job'];
export type VideoTranscript = Schemas['VideoTranscript'];
export type JobVideoTranscript = Schemas['JobVideoTranscript'];

/** The largest page of results. */
const RESULTS_PER_PAGE = 100;
/** For a canceled job whose last slice is still being stored. */
const PAUSE_SECONDS_DEFAULT = 2;

/** What a job reads; the videos are IDs or URLs, up to 10,000. */
export type JobSource = { channel: string } | { playlist: string } | { videos: readonly string[] };

type NewJob = Schemas['NewJobBody'];
export type Labels = NonNullable<NewJob['labels']>;

/** `kinds` are for a channel or a playlist. */
export interface JobOptions extends Omit<ListOptions, 'limit'> {
  /** The number of videos, from the start of the list; all by default. */
  limit?: number;
  /** The ID of a video: only the uploads of the channel that are newer than it. */
  since?: string;
  /** What to do when the monthly quota is used up; `pause` by default. */
  onQuota?: 'pause' | 'fail';
  /** Your own pairs. */
  labels?: Labels;
  /** Whether the texts are kept in the library. */
  keep?: boolean;
  /** The same key and options give the same job; a new key by default. */
  idempotencyKey?: string;
}

export interface ListedOptions extends CallOptions {
  /** Only what has this label, such as `user:42`. */
  label?: string;
}

export interface WaitOptions extends CallOptions {
  /** Called with the job each time that it was read. */
  onProgress?: (job: Job) => void;
}

export interface ResultsOptions extends CallOptions {
  /** The `next` of a page, to begin after it. */
  after?: string;
}

/** Archive jobs. Every method throws ChannelTranscriptsError. */
export class Jobs {
  constructor(private readonly http: Http) {}

  /** Starts a job that fetches the transcripts of a channel, a playlist or a list of videos. @param source a text is a channel */
  create(source: string | JobSource, options: JobOptions = {}): Promise<Job> {
    const { limit, since, labels, keep, onQuota = 'pause', idempotencyKey } = options;
    const body: NewJob = {
      ...sourceOf(source),
      onQuota,
      ...defined({ limit, since, labels, keep }),
      ...selectionOf(options),
    };
    const header = { 'Idempotency-Key': idempotencyKey ?? crypto.randomUUID() };
    return this.http.call('createJob', { body, header }, options);
  }

  /** Yields the organization's jobs, newest first. */
  list({ label, ...options }: ListedOptions = {}): AsyncGenerator<Job, void, undefined> {
    return itemsOf<Job, string>(async (after) => {
      const { jobs, next } = await this.http.call('listJobs', { query: defined({ after, label }) }, options);
      return [jobs, next];
    });
  }

  get(id: string, options?: CallOptions): Promise<Job> {
    return this.http.call('getJob', { path: { id } }, options);
  }

  /** Keeps the texts, also those that are stored, or no more of them. */
  change(id: string, change: Schemas['JobChangeBody'], options?: CallOptions): Promise<Job> {
    return this.http.call('changeJob', { path: { id }, body: change }, options);
  }

  cancel(id: string, options?: CallOptions): Promise<Job> {
    return this.http.call('cancelJob', { path: { id }, body: {} }, options);
  }

  resume(id: string, options?: CallOptions): Promise<Job> {
    return this.http.call('resumeJob', { path: { id }, body: {} }, options);
  }

  delete(id: string, options?: CallOptions): Promise<void> {
    return this.http.call('deleteJob', { path: { id } }, options);
  }

  /** Resolves with the job when it has finished: completed, canceled or failed. Reads it as often as the service suggests. */
  async waitFor(id: string, { onProgress, ...options }: WaitOptions = {}): Promise<Job> {
    for (;;) {
      const job = await this.get(id, { retries: RETRIES_WHILE_FOLLOWING, ...options });
      onProgress?.(job);
      if (job.checkAgainSeconds === null) return job;
      await this.http.pause(job.checkAgainSeconds, options.signal);
    }
  }

  /**
   * Yields the results of a job in the order in which they became final, also while it runs, to its end: each once, and none is
   * missing. Returns the finished job.
   */
  async *results(
    id: string,
    { after, ...options }: ResultsOptions = {},
  ): AsyncGenerator<JobVideoTranscript, Job, undefined> {
    for (let position = after; ;) {
      const query = { limit: RESULTS_PER_PAGE, ...defined({ after: position }) };
      const given = { retries: RETRIES_WHILE_FOLLOWING, ...options };
      // A page is read completely before its first entry is yielded, so a repeated read repeats no entry.
      const page = await this.http.call('getJobResults', { path: { id }, query }, given);
      yield* page.results;
      if (page.next === null) return page.job;
      if (page.results.length === 0) {
        await this.http.pause(page.job.checkAgainSeconds ?? PAUSE_SECONDS_DEFAULT, options.signal);
      }
      position = page.next;
    }
  }
}

function sourceOf(source: string | JobSource): Pick<NewJob, 'channel' | 'playlist' | 'videos'> {
  if (typeof source === 'string') return { channel: source };
  return 'videos' in source ? { videos: [...source.videos] } : source;
}
