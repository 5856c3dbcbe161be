import type { Client } from 'openapi-fetch';
import { errorOf } from './errors.js';
import { patiently, pause, type Pause } from './poll.js';
import type { components, paths } from './schema.js';

type Schemas = components['schemas'];
export type Job = Schemas['Job'];
export type JobsPage = Schemas['Jobs'];
export type JobResults = Schemas['JobResults'];
export type VideoTranscript = Schemas['VideoTranscript'];

type Http = Client<paths, 'application/json'>;

/** The largest page of results. */
const RESULTS_PER_PAGE = 100;
/** For a canceled job whose last slice is still being stored. */
const PAUSE_SECONDS_DEFAULT = 2;

export interface JobOptions {
  /** Language codes in order of preference. */
  languages?: readonly string[];
  /** The number of uploads, the newest ones; all by default. */
  limit?: number;
  /** The ID of a video: only the uploads that are newer than it. */
  since?: string;
  /** What to do when the monthly quota is used up; `pause` by default. */
  onQuota?: 'pause' | 'fail';
  /** Makes the call safe to repeat: the same key and options give the same job. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface PageOptions<Position> {
  limit?: number;
  /** The `next` of the page before. */
  after?: Position;
  signal?: AbortSignal;
}

export interface SignalOption {
  signal?: AbortSignal;
}

export interface WaitOptions extends SignalOption {
  /** Called with the job each time that it was read. */
  onProgress?: (job: Job) => void;
}

export interface FollowOptions extends SignalOption {
  /** The `next` of a page, to begin after it. */
  after?: number;
}

/** Archive jobs. Every method throws ChannelTranscriptsError. */
export interface JobsClient {
  /** Starts a job that fetches the transcripts of all uploads of a channel. */
  create(channel: string, options?: JobOptions): Promise<Job>;
  /** Returns a page of the organization's jobs, newest first. */
  list(options?: PageOptions<string>): Promise<JobsPage>;
  get(id: string, options?: SignalOption): Promise<Job>;
  cancel(id: string, options?: SignalOption): Promise<Job>;
  resume(id: string, options?: SignalOption): Promise<Job>;
  delete(id: string, options?: SignalOption): Promise<void>;
  /** Returns a page of the results; `next` is null only at the end of a finished job. */
  results(id: string, options?: PageOptions<number>): Promise<JobResults>;
}

export function jobsClient(http: Http): JobsClient {
  return {
    create: async (channel, { languages, idempotencyKey, signal, ...options } = {}) => {
      const { data, error, response } = await http.POST('/jobs', {
        body: { onQuota: 'pause', ...options, channel, ...(languages && { languages: [...languages] }) },
        ...(idempotencyKey !== undefined && { params: { header: { 'Idempotency-Key': idempotencyKey } } }),
        ...(signal && { signal }),
      });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    list: async ({ signal, ...query } = {}) => {
      const { data, error, response } = await http.GET('/jobs', { params: { query }, ...(signal && { signal }) });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    get: async (id, options) => {
      const { data, error, response } = await http.GET('/jobs/{id}', { params: { path: { id } }, ...options });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    cancel: async (id, options) => {
      const { data, error, response } = await http.POST('/jobs/{id}/cancel', {
        params: { path: { id } },
        body: {},
        ...options,
      });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    resume: async (id, options) => {
      const { data, error, response } = await http.POST('/jobs/{id}/resume', {
        params: { path: { id } },
        body: {},
        ...options,
      });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    delete: async (id, options) => {
      const { error, response } = await http.DELETE('/jobs/{id}', { params: { path: { id } }, ...options });
      if (!response.ok) throw errorOf(response, error);
    },
    results: async (id, { signal, ...query } = {}) => {
      const params = { path: { id }, query };
      const { data, error, response } = await http.GET('/jobs/{id}/results', { params, ...(signal && { signal }) });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
  };
}

/** Reads a job by its `checkAgainSeconds` until it has finished. */
export async function waitForJob(
  { get }: Pick<JobsClient, 'get'>,
  id: string,
  { signal, onProgress }: WaitOptions = {},
  wait: Pause = pause,
): Promise<Job> {
  for (;;) {
    const job = await patiently(() => get(id, signal && { signal }), signal, wait);
    onProgress?.(job);
    if (job.checkAgainSeconds === null) return job;
    await wait(job.checkAgainSeconds, signal);
  }
}

/** Yields the results of a job to the end of the job, each once and in order. Returns the finished job. */
export async function* followResults(
  { results }: Pick<JobsClient, 'results'>,
  id: string,
  { after, signal }: FollowOptions = {},
  wait: Pause = pause,
): AsyncGenerator<VideoTranscript, Job, undefined> {
  let position = after;
  for (;;) {
    const from = position;
    const options = { limit: RESULTS_PER_PAGE, ...(from !== undefined && { after: from }), ...(signal && { signal }) };
    // A page is read completely before its first entry is yielded, so a repeated read repeats no entry.
    const page = await patiently(() => results(id, options), signal, wait);
    yield* page.results;
    if (page.next === null) return page.job;
    if (page.results.length === 0) await wait(page.job.checkAgainSeconds ?? PAUSE_SECONDS_DEFAULT, signal);
    position = page.next;
  }
}
