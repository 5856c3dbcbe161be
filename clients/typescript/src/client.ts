import createClient, { type Client } from 'openapi-fetch';
import { errorOf } from './errors.js';
import { readEvents, type TranscriptsEvent } from './events.js';
import {
  followResults,
  jobsClient,
  waitForJob,
  type FollowOptions,
  type Job,
  type JobsClient,
  type WaitOptions,
} from './jobs.js';
import type { components, paths } from './schema.js';
import { webhooksClient, type WebhooksClient } from './webhooks.js';

export { ChannelTranscriptsError, isErrorWithCode, type ErrorCode, type ErrorFields } from './errors.js';
export type { TranscriptsEvent } from './events.js';
export type {
  FollowOptions,
  Job,
  JobOptions,
  JobResults,
  JobsClient,
  JobsPage,
  PageOptions,
  WaitOptions,
} from './jobs.js';
export type {
  JobEvent,
  Webhook,
  WebhookDeliveries,
  WebhookEvent,
  WebhookOptions,
  WebhooksClient,
  WebhookTestResult,
  WebhookWithSecret,
} from './webhooks.js';

export type ChannelTranscripts = components['schemas']['ChannelTranscripts'];
export type VideoTranscript = components['schemas']['VideoTranscript'];
export type ChannelUploads = components['schemas']['ChannelUploads'];
export type PlaylistTranscripts = components['schemas']['PlaylistTranscripts'];
export type VideosTranscripts = components['schemas']['VideosTranscripts'];
export type Usage = components['schemas']['Usage'];

const STREAMED = 'application/x-ndjson';

export interface ClientOptions {
  /** The URL of the service, such as `https://transcripts.example.com`. */
  baseUrl: string;
  /** An API key: `ctk_…`. */
  apiKey: string;
  /** Replaces the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
}

export interface VideoOptions {
  /** Language codes in order of preference. */
  languages?: readonly string[];
  /** Cancels the call. Transcripts fetched before that are charged. */
  signal?: AbortSignal;
}

export interface ListOptions extends VideoOptions {
  /** The number of videos; 25 by default, at most 100. */
  limit?: number;
}

export interface TranscriptsOptions extends ListOptions {
  /** The ID of a video: only the uploads that are newer than it. */
  since?: string;
}

export type UploadsOptions = Pick<TranscriptsOptions, 'limit' | 'since' | 'signal'>;

export interface ChannelTranscriptsClient {
  /** Returns the transcripts of a channel's newest uploads. Throws ChannelTranscriptsError. */
  transcripts(channel: string, options?: TranscriptsOptions): Promise<ChannelTranscripts>;
  /** Yields the same as events, each as soon as it is available. Throws ChannelTranscriptsError before the first one. */
  events(channel: string, options?: TranscriptsOptions): AsyncGenerator<TranscriptsEvent, void, undefined>;
  /** Lists a channel's newest uploads without their transcripts, which costs no quota. Throws ChannelTranscriptsError. */
  uploads(channel: string, options?: UploadsOptions): Promise<ChannelUploads>;
  /** Returns the transcripts of a playlist's first videos. Throws ChannelTranscriptsError. */
  playlist(playlist: string, options?: ListOptions): Promise<PlaylistTranscripts>;
  /** Returns the transcripts of up to 100 videos, in their order. Throws ChannelTranscriptsError. */
  videos(videos: readonly string[], options?: VideoOptions): Promise<VideosTranscripts>;
  /** Returns the transcript of one video. Throws ChannelTranscriptsError, also when the video has none. */
  video(video: string, options?: VideoOptions): Promise<VideoTranscript>;
  /** Returns the quota of the organization and its use. Throws ChannelTranscriptsError. */
  usage(options?: { signal?: AbortSignal }): Promise<Usage>;
  /** Archive jobs: create, list, get, cancel, resume, delete, and pages of results. */
  readonly jobs: JobsClient;
  /**
   * Resolves with the job when it has finished: completed, canceled or failed. Reads it as often as the service suggests, and
   * outlasts failures that pass for about three minutes. Throws ChannelTranscriptsError.
   */
  waitForJob(id: string, options?: WaitOptions): Promise<Job>;
  /**
   * Yields the results of a job in the channel's order, also while it runs, to its end: each once, and none is missing. Outlasts
   * failures like `waitForJob`. Returns the finished job. Throws ChannelTranscriptsError.
   */
  jobResults(id: string, options?: FollowOptions): AsyncGenerator<VideoTranscript, Job, undefined>;
  /** Webhooks of archive jobs: create, list, delete, rotate, test, and pages of deliveries. */
  readonly webhooks: WebhooksClient;
  /** Typed access to every operation by its path; returns `data` or `error`, and throws for neither. */
  readonly http: Client<paths, 'application/json'>;
}

/** Creates a client of the service. It does not retry, except while it waits for a job. */
export function createChannelTranscriptsClient({ baseUrl, apiKey, fetch }: ClientOptions): ChannelTranscriptsClient {
  const headers = { Authorization: `Bearer ${apiKey}` };
  const http = createClient<paths, 'application/json'>({ baseUrl, headers, ...(fetch && { fetch }) });
  const jobs = jobsClient(http);
  return {
    http,
    jobs,
    waitForJob: (id, options) => waitForJob(jobs, id, options),
    jobResults: (id, options) => followResults(jobs, id, options),
    webhooks: webhooksClient(http),
    transcripts: async (channel, options = {}) => {
      const { data, error, response } = await http.GET('/channels/{id}/transcripts', callOf(channel, options));
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    events: (channel, options = {}) => events(http, channel, options),
    uploads: async (channel, options = {}) => {
      const { data, error, response } = await http.GET('/channels/{id}/uploads', callOf(channel, options));
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    playlist: async (playlist, options = {}) => {
      const { data, error, response } = await http.GET('/playlists/{id}/transcripts', callOf(playlist, options));
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    videos: async (videos, { languages, signal } = {}) => {
      const body = { videos: [...videos], ...(languages && { languages: [...languages] }) };
      const { data, error, response } = await http.POST('/transcripts', { body, ...(signal && { signal }) });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    video: async (video, options = {}) => {
      const { data, error, response } = await http.GET('/videos/{id}/transcript', callOf(video, options));
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    usage: async ({ signal } = {}) => {
      const { data, error, response } = await http.GET('/usage', signal && { signal });
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
  };
}

async function* events(
  http: Client<paths, 'application/json'>,
  channel: string,
  options: TranscriptsOptions,
): AsyncGenerator<TranscriptsEvent, void, undefined> {
  const { error, response, data } = await http.GET('/channels/{id}/transcripts', {
    ...callOf(channel, options),
    headers: { Accept: STREAMED },
    parseAs: 'stream',
  });
  if (!data) throw errorOf(response, error);
  if (!response.headers.get('Content-Type')?.startsWith(STREAMED)) {
    await data.cancel();
    throw new Error('This service does not support streaming, which requires version 1.1.0 of the API.');
  }
  yield* readEvents(data);
}

function callOf(id: string, { limit, languages, since, signal }: TranscriptsOptions) {
  const query = {
    ...(limit !== undefined && { limit }),
    ...(languages && { languages: languages.join(',') }),
    ...(since !== undefined && { since }),
  };
  return { params: { path: { id }, query }, ...(signal && { signal }) };
}
