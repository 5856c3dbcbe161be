import createClient, { type Client } from 'openapi-fetch';
import { errorOf } from './errors.js';
import { readEvents, type TranscriptsEvent } from './events.js';
import type { components, paths } from './schema.js';

export { ChannelTranscriptsError, isErrorWithCode, type ErrorCode, type ErrorFields } from './errors.js';
export type { TranscriptsEvent } from './events.js';

export type ChannelTranscripts = components['schemas']['ChannelTranscripts'];
export type VideoTranscript = components['schemas']['VideoTranscript'];
export type Usage = components['schemas']['Usage'];

const STREAMED = 'application/x-ndjson';

export interface ClientOptions {
  /** Where the service is, such as `https://transcripts.example.com`. */
  baseUrl: string;
  /** An API key of an organization: `ctk_…`. */
  apiKey: string;
  /** Another `fetch` than the platform's own. */
  fetch?: (request: Request) => Promise<Response>;
}

export interface TranscriptsOptions {
  /** How many of the newest uploads; 25 when it is not given, and 100 at most. */
  limit?: number;
  /** Language codes in order of preference. */
  languages?: readonly string[];
  /** Ends the call early. What was fetched by then is charged. */
  signal?: AbortSignal;
}

export interface ChannelTranscriptsClient {
  /** The transcripts of a channel's newest uploads, when all of them are there. Throws ChannelTranscriptsError. */
  transcripts(channel: string, options?: TranscriptsOptions): Promise<ChannelTranscripts>;
  /** The same as events, each as soon as it is ready. Throws ChannelTranscriptsError before the first one. */
  events(channel: string, options?: TranscriptsOptions): AsyncGenerator<TranscriptsEvent, void, undefined>;
  /** What the organization has used of its quota. Throws ChannelTranscriptsError. */
  usage(options?: { signal?: AbortSignal }): Promise<Usage>;
  /** Every operation by its path, typed; answers with `data` or `error` and throws for neither. */
  readonly http: Client<paths, 'application/json'>;
}

/** A client of the service; it tries nothing again by itself. */
export function createChannelTranscriptsClient({ baseUrl, apiKey, fetch }: ClientOptions): ChannelTranscriptsClient {
  const headers = { Authorization: `Bearer ${apiKey}` };
  const http = createClient<paths, 'application/json'>({ baseUrl, headers, ...(fetch && { fetch }) });
  return {
    http,
    transcripts: async (channel, options = {}) => {
      const { data, error, response } = await http.GET('/channels/{id}/transcripts', callOf(channel, options));
      if (data === undefined) throw errorOf(response, error);
      return data;
    },
    events: (channel, options = {}) => events(http, channel, options),
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
    throw new Error('This service does not stream: it is older than version 1.1.0 of the interface.');
  }
  yield* readEvents(data);
}

function callOf(channel: string, { limit, languages, signal }: TranscriptsOptions) {
  const query = { ...(limit !== undefined && { limit }), ...(languages && { languages: languages.join(',') }) };
  return { params: { path: { id: channel }, query }, ...(signal && { signal }) };
}
