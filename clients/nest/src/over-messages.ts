import {
  followPages,
  isChannelTranscriptsError,
  noResponseError,
  pageOf,
  pause,
  statedError,
  type CallOptions,
  type ChannelUploads,
  type Credential,
  type FeedLine,
  type FeedLineOfAll,
  type FeedOptions,
  type FollowOptions,
  type ListOptions,
  type TranscriptsEvent,
  type TranscriptsOptions,
  type UploadsOptions,
  type VideoOptions,
  type VideoTranscript,
} from '@channel-transcripts/client';
import type { ClientProxy } from '@nestjs/microservices';
import { materialize, timeout, type Observable, type ObservableNotification } from 'rxjs';
import { ChannelTranscripts, type Operations } from './channel-transcripts.js';

const TIMEOUT_SECONDS_DEFAULT = 120;
const PROBE_TIMEOUT_SECONDS = 5;
/** The codes that are 401 over HTTP for a credential that was sent. */
const REFUSED_CREDENTIALS = ['invalid_api_key', 'invalid_token'];
const RESULTS_PER_PAGE = 100;

type Events = AsyncGenerator<TranscriptsEvent, void, undefined>;

/**
 * The service over Nest's TCP or NATS. A call is not repeated, except with a new token when its token was refused, and lists
 * have their results in the order in which they finished. Leaving a call ends nothing in the service: it runs to its end, and
 * what it fetches is charged.
 */
export class MessageChannelTranscripts extends ChannelTranscripts {
  constructor(
    private readonly connection: ClientProxy,
    private readonly credential: Credential,
    private readonly timeoutSeconds = TIMEOUT_SECONDS_DEFAULT,
  ) {
    super();
  }

  readonly events = (id: string, options: TranscriptsOptions = {}): Events =>
    this.send<TranscriptsEvent>('channels.transcripts', { id }, options);

  readonly playlistEvents = (id: string, options: ListOptions = {}): Events =>
    this.send<TranscriptsEvent>('playlists.transcripts', { id }, options);

  readonly videosEvents = (videos: readonly string[], options: VideoOptions = {}): Events =>
    this.send<TranscriptsEvent>('videos.transcripts', { videos }, options);

  readonly transcripts: Operations['transcripts'] = async (id, options) => {
    const { channel, results, summary } = await whole(this.events(id, options));
    return { channel: present(channel), results, summary: present(summary) };
  };

  readonly playlist: Operations['playlist'] = async (id, options) => {
    const { playlist, results, summary } = await whole(this.playlistEvents(id, options));
    return { playlist: present(playlist), results, summary: present(summary) };
  };

  readonly videos: Operations['videos'] = async (ids, options) => {
    const { results, summary } = await whole(this.videosEvents(ids, options));
    return { results, summary: present(summary) };
  };

  readonly video = (id: string, options: VideoOptions = {}): Promise<VideoTranscript> =>
    only(this.send<VideoTranscript>('videos.transcript', { id }, options));

  readonly uploads = (id: string, options: UploadsOptions = {}): Promise<ChannelUploads> =>
    only(this.send<ChannelUploads>('channels.uploads', { id }, options));

  readonly subscriptions: Operations['subscriptions'] = {
    follow: (id: string, { after, ...options }: FollowOptions = {}) => {
      const read = async (cursor: string | undefined) =>
        pageOf(await this.lines<FeedLine>('subscriptions.results', { id, after: cursor }, options));
      return followPages(read, after, (seconds) => pause(seconds, options.signal));
    },
    feed: ({ after, label, channel, ...options }: FeedOptions = {}) => {
      const read = async (cursor: string | undefined) =>
        pageOf(await this.lines<FeedLineOfAll>('feed', { label, channel, after: cursor }, options));
      return followPages(read, after, (seconds) => pause(seconds, options.signal));
    },
  };

  /**
   * Returns why the service is not ready; undefined when it is. A message without `id` costs nothing: a service that is ready
   * checks the key and refuses the parameters.
   */
  async probe(): Promise<string | undefined> {
    try {
      await only(this.send('channels.uploads', {}, {}, PROBE_TIMEOUT_SECONDS));
      return undefined;
    } catch (error) {
      if (isChannelTranscriptsError(error) && error.code !== 'no_response')
        return error.code === 'invalid_request' ? undefined : error.code;
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Called by Nest. */
  async onApplicationShutdown(): Promise<void> {
    await this.connection.close();
  }

  private async lines<Line>(pattern: string, fields: object, options: CallOptions): Promise<Line[]> {
    const lines: Line[] = [];
    for await (const line of this.send<Line>(pattern, { limit: RESULTS_PER_PAGE, ...fields }, options))
      lines.push(line);
    return lines;
  }

  private async *send<Answer>(
    pattern: string,
    fields: object,
    { signal, requestId, retries: _, ...options }: CallOptions,
    timeoutSeconds = this.timeoutSeconds,
  ): AsyncGenerator<Answer, void, undefined> {
    const message = { ...fields, ...options, ...(requestId !== undefined && { requestId }) };
    for (let mayRenew = true; ; mayRenew = false) {
      const apiKey = await this.credential.value();
      const events = this.connection
        .send<Answer, object>(pattern, { apiKey, ...message })
        .pipe(timeout({ each: timeoutSeconds * 1000 }));
      try {
        return yield* valuesOf(events, signal);
      } catch (error) {
        if (signal?.aborted) throw error;
        const stated = statedError(error);
        // Refused before its first event, and at no cost.
        const isRefused = stated !== undefined && REFUSED_CREDENTIALS.includes(stated.code);
        if (mayRenew && isRefused && this.credential.discard(apiKey)) continue;
        throw stated ?? noResponseError(`The service does not respond: ${textOf(error)}`, error);
      }
    }
  }
}

/** Yields the values of an observable, and unsubscribes when the reader leaves or the signal aborts. */
async function* valuesOf<Value>(
  source: Observable<Value>,
  signal?: AbortSignal,
): AsyncGenerator<Value, void, undefined> {
  const waiting: ObservableNotification<Value>[] = [];
  let wake = (): void => undefined;
  const add = (notification: ObservableNotification<Value>): void => {
    waiting.push(notification);
    wake();
  };
  const abort = (): void => add({ kind: 'E', error: signal?.reason as unknown });
  signal?.throwIfAborted();
  signal?.addEventListener('abort', abort);
  const subscription = source.pipe(materialize()).subscribe(add);
  try {
    for (;;) {
      const next = waiting.shift();
      if (next?.kind === 'N') yield next.value;
      else if (next?.kind === 'E') throw next.error;
      else if (next?.kind === 'C') return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    subscription.unsubscribe();
    signal?.removeEventListener('abort', abort);
  }
}

type Parts = {
  [Type in Exclude<TranscriptsEvent['type'], 'result'>]?: Extract<TranscriptsEvent, { type: Type }> extends Record<
    Type,
    infer Part
  >
    ? Part
    : never;
};

async function whole(events: Events): Promise<Parts & { results: VideoTranscript[] }> {
  const results: VideoTranscript[] = [];
  const parts: Parts = {};
  for await (const event of events) {
    if (event.type === 'result') results.push(event.result);
    else if (event.type === 'channel') parts.channel = event.channel;
    else if (event.type === 'playlist') parts.playlist = event.playlist;
    else parts.summary = event.summary;
  }
  return { ...parts, results };
}

async function only<Answer>(answers: AsyncGenerator<Answer>): Promise<Answer> {
  for await (const answer of answers) return answer;
  throw noResponseError('The service sent no answer.');
}

function present<Part>(part: Part | undefined): Part {
  if (part === undefined) throw noResponseError('The answer of the service is incomplete.');
  return part;
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || String(Reflect.get(error, 'code') ?? error.name);
}
