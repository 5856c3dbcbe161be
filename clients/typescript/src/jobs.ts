import { defined, itemsOf, RETRIES_WHILE_FOLLOWING, type CallOptions, type Http } from './http.js';
import type { components } from './schema.js';

type Schemas = components['schemas'];
export type Job = Schemas['Job'];
export type VideoTranscript = Schemas['VideoTranscript'];

/** The largest page of results. */
const RESULTS_PER_PAGE = 100;
/** For a canceled job whose last slice is still being stored. */
const PAUSE_SECONDS_DEFAULT = 2;

export interface JobOptions extends CallOptions {
  /** Language codes in order of preference. */
  languages?: readonly string[];
  /** The number of uploads, the newest ones; all by default. */
  limit?: number;
  /** The ID of a video: only the uploads that are newer than it. */
  since?: string;
  /** What to do when the monthly quota is used up; `pause` by default. */
  onQuota?: 'pause' | 'fail';
  /** The same key and options give the same job; a new key by default. */
  idempotencyKey?: string;
}

export interface WaitOptions extends CallOptions {
  /** Called with the job each time that it was read. */
  onProgress?: (job: Job) => void;
}

export interface ResultsOptions extends CallOptions {
  /** The `next` of a page, to begin after it. */
  after?: number;
}

/** Archive jobs. Every method throws ChannelTranscriptsError. */
export class Jobs {
  constructor(private readonly http: Http) {}

  /** Starts a job that fetches the transcripts of all uploads of a channel. */
  create(
    channel: string,
    { languages, limit, since, onQuota = 'pause', idempotencyKey, ...options }: JobOptions = {},
  ): Promise<Job> {
    const body = { channel, onQuota, ...defined({ languages: languages && [...languages], limit, since }) };
    const header = { 'Idempotency-Key': idempotencyKey ?? crypto.randomUUID() };
    return this.http.call('createJob', { body, header }, options);
  }

  /** Yields the organization's jobs, newest first. */
  list(options?: CallOptions): AsyncGenerator<Job, void, undefined> {
    return itemsOf<Job, string>(undefined, async (after) => {
      const { jobs, next } = await this.http.call('listJobs', { query: defined({ after }) }, options);
      return [jobs, next];
    });
  }

  get(id: string, options?: CallOptions): Promise<Job> {
    return this.http.call('getJob', { path: { id } }, options);
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
   * Yields the results of a job as they become final, to its end: each once, and none is missing. Returns the finished job.
   */
  async *results(
    id: string,
    { after, ...options }: ResultsOptions = {},
  ): AsyncGenerator<VideoTranscript, Job, undefined> {
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
