import type { AuditEntry } from './admin.js';
import { errorOf } from './errors.js';
import { linesOf, readEvents, type TranscriptsEvent } from './events.js';
import { defined, Http, itemsOf, pause, withCall, type CallOptions, type ClientOptions, type Pause } from './http.js';
import { Jobs } from './jobs.js';
import { Library, type LibraryOptions } from './library.js';
import type { OperationId, ParametersOf, ResultOf } from './operations.js';
import type { components } from './schema.js';
import { Subscriptions } from './subscriptions.js';
import { selectionOf, textsOf, type ListOptions, type VideoOptions } from './video-options.js';
import { Webhooks } from './webhooks.js';

export type ChannelTranscripts = components['schemas']['ChannelTranscripts'];
export type ChannelUploads = components['schemas']['ChannelUploads'];
export type PlaylistTranscripts = components['schemas']['PlaylistTranscripts'];
export type PlaylistVideos = components['schemas']['PlaylistVideos'];
/** A piece of a transcript, for a vector store. */
export type Document = components['schemas']['Document'];
/** A video without a transcript. */
export type FailedDocument = components['schemas']['FailedDocument'];
export type Ready = components['schemas']['Ready'];
export type Usage = components['schemas']['Usage'];
export type VideosTranscripts = components['schemas']['VideosTranscripts'];
export type VideoTranscript = components['schemas']['VideoTranscript'];

const STREAMED = 'application/x-ndjson';

export interface TranscriptsOptions extends ListOptions {
  /** The ID of a video: only the uploads that are newer than it. */
  since?: string;
}

type WithoutTexts<Options> = Omit<Options, Exclude<keyof VideoOptions, keyof CallOptions>>;
export type UploadsOptions = WithoutTexts<TranscriptsOptions>;
export type PlaylistVideosOptions = WithoutTexts<ListOptions>;
/** What documents are made of: one of these. Those of a job, a subscription, the feed, or (a part of) the library are stored. */
export type DocumentSource =
  | { channel: string }
  | { playlist: string }
  | { videos: readonly string[] }
  | { job: string }
  | { subscription: string }
  | { feed: true }
  | { library: Omit<LibraryOptions, keyof CallOptions> };
/** Those of results are `limit`, `chunkSeconds` and `after`: the `cursor` of a document, behind which they begin. */
export type DocumentsOptions = Omit<TranscriptsOptions, 'include'> & { after?: string };
export type VideoFormat = Exclude<NonNullable<ParametersOf<'getVideoTranscript'>['query']>['format'], undefined>;
type Events = AsyncGenerator<TranscriptsEvent, void, undefined>;
type Streamed = 'getChannelTranscripts' | 'getPlaylistTranscripts' | 'getVideoTranscripts';

/**
 * A client of the service. It repeats calls that the service refused for a moment, and waits as long as the service asks.
 * A charged call whose response was lost is not repeated. Every method throws ChannelTranscriptsError.
 */
export class ChannelTranscriptsClient {
  /** Archive jobs: all uploads of a channel. */
  readonly jobs: Jobs;
  /** Subscriptions: each new upload of a channel. */
  readonly subscriptions: Subscriptions;
  /** What they keep, and its search. */
  readonly library: Library;
  /** Webhooks of archive jobs and subscriptions. */
  readonly webhooks: Webhooks;
  private readonly http: Http;

  constructor(options: ClientOptions, wait: Pause = pause) {
    this.http = new Http(options, wait);
    this.jobs = new Jobs(this.http);
    this.subscriptions = new Subscriptions(this.http);
    this.library = new Library(this.http);
    this.webhooks = new Webhooks(this.http);
  }

  /** Calls any operation by the `operationId` of the OpenAPI document, for example for one page of a list. */
  call<Id extends OperationId>(id: Id, parameters: ParametersOf<Id>, options?: CallOptions): Promise<ResultOf<Id>> {
    return this.http.call(id, parameters, options);
  }

  /** Returns the transcripts of a channel's newest uploads. */
  transcripts(channel: string, options: TranscriptsOptions = {}): Promise<ChannelTranscripts> {
    return this.http.call('getChannelTranscripts', uploadsOf(channel, options), options);
  }

  /** Yields the same as events, each as soon as it is available. Leaving the loop cancels the call. */
  events(channel: string, options: TranscriptsOptions = {}): Events {
    return this.stream('getChannelTranscripts', uploadsOf(channel, options), options);
  }

  /** Lists a channel's newest uploads without their transcripts, which costs no quota. */
  uploads(channel: string, options: UploadsOptions = {}): Promise<ChannelUploads> {
    const { limit, kinds, publishedAfter, since } = options;
    const query = defined({ limit, kinds: kinds?.join(','), publishedAfter, since });
    return this.http.call('listChannelUploads', { path: { id: channel }, query }, options);
  }

  /** Lists a playlist's first videos without their transcripts, which costs no quota. */
  playlistVideos(playlist: string, options: PlaylistVideosOptions = {}): Promise<PlaylistVideos> {
    const { limit, kinds, publishedAfter } = options;
    const query = defined({ limit, kinds: kinds?.join(','), publishedAfter });
    return this.http.call('listPlaylistVideos', { path: { id: playlist }, query }, options);
  }

  /** Returns the transcripts of a playlist's first videos. */
  playlist(playlist: string, options: ListOptions = {}): Promise<PlaylistTranscripts> {
    return this.http.call('getPlaylistTranscripts', listOf(playlist, options), options);
  }

  /** Yields the same as events. */
  playlistEvents(playlist: string, options: ListOptions = {}): Events {
    return this.stream('getPlaylistTranscripts', listOf(playlist, options), options);
  }

  /** Returns the transcripts of up to 100 videos, in their order. */
  videos(videos: readonly string[], options: VideoOptions = {}): Promise<VideosTranscripts> {
    return this.http.call('getVideoTranscripts', videosOf(videos, options), options);
  }

  /** Yields the same as events. */
  videosEvents(videos: readonly string[], options: VideoOptions = {}): Events {
    return this.stream('getVideoTranscripts', videosOf(videos, options), options);
  }

  /** Returns the transcript of one video. Also throws when the video has none. */
  video(video: string, options: VideoOptions = {}): Promise<VideoTranscript> {
    return this.http.call('getVideoTranscript', { path: { id: video }, query: textsOf(options) }, options);
  }

  /** Returns the transcript of one video as text, subtitles or Markdown. */
  videoAs(format: Exclude<VideoFormat, 'json'>, video: string, options: VideoOptions = {}): Promise<string> {
    const query = { format, ...textsOf(options) };
    return this.http.send('getVideoTranscript', { path: { id: video }, query }, options, (response) => response.text());
  }

  /**
   * Yields transcripts as pieces of about a minute, ready for a vector store, and for each video without a transcript one with an
   * `error`. The last piece of a stored entry has the `cursor` behind which a later call can begin.
   */
  documents(
    source: DocumentSource,
    options: DocumentsOptions = {},
  ): AsyncGenerator<Document | FailedDocument, void, undefined> {
    const { limit, after, chunkSeconds, since } = options;
    const stored = defined({ as: 'documents', limit, after, chunkSeconds } as const);
    const query = { as: 'documents', ...defined({ limit }), ...selectionOf(options) } as const;
    if ('job' in source) return this.pieces('getJobResults', { path: { id: source.job }, query: stored }, options);
    if ('subscription' in source)
      return this.pieces('getSubscriptionResults', { path: { id: source.subscription }, query: stored }, options);
    if ('feed' in source) return this.pieces('getFeed', { query: stored }, options);
    if ('library' in source)
      return this.pieces('listLibraryVideos', { query: { ...stored, ...defined(source.library) } }, options);
    if ('videos' in source)
      return this.pieces(
        'getVideoTranscripts',
        { body: { as: 'documents', ...videosOf(source.videos, options).body } },
        options,
      );
    if ('playlist' in source)
      return this.pieces('getPlaylistTranscripts', { path: { id: source.playlist }, query }, options);
    const ofChannel = { ...query, ...defined({ since }) };
    return this.pieces('getChannelTranscripts', { path: { id: source.channel }, query: ofChannel }, options);
  }

  /** Returns the quota of the organization and its use. */
  usage(options?: CallOptions): Promise<Usage> {
    return this.http.call('getUsage', {}, options);
  }

  /** Yields what was changed in the organization, newest first. */
  audit(options?: CallOptions): AsyncGenerator<AuditEntry, void, undefined> {
    type Position = NonNullable<ResultOf<'listChanges'>['next']>;
    return itemsOf<AuditEntry, Position>(async (after) => {
      const { entries, next } = await this.http.call('listChanges', { query: defined({ after }) }, options);
      return [entries, next];
    });
  }

  /** Returns whether the service accepts calls, and the state of what it needs. */
  ready(options?: CallOptions): Promise<Ready> {
    return this.http.call('getReady', {}, options);
  }

  private stream<Id extends Streamed>(id: Id, parameters: ParametersOf<Id>, options: CallOptions): Events {
    return this.read(id, parameters, options, readEvents);
  }

  private pieces<Id extends OperationId>(id: Id, parameters: ParametersOf<Id>, options: CallOptions) {
    return this.read(id, parameters, options, async function* (body) {
      for await (const line of linesOf(body)) yield JSON.parse(line) as Document | FailedDocument;
    });
  }

  private async *read<Id extends OperationId, Item>(
    id: Id,
    parameters: ParametersOf<Id>,
    options: CallOptions,
    itemsIn: (body: ReadableStream<Uint8Array>) => AsyncIterable<Item>,
  ): AsyncGenerator<Item, void, undefined> {
    const read = async (response: Response, call: string) => {
      const { body } = response;
      if (body && response.headers.get('Content-Type')?.startsWith(STREAMED)) return { body, call };
      await response.body?.cancel();
      throw errorOf(call, response, undefined, '');
    };
    const { body, call } = await this.http.send(id, parameters, options, read, STREAMED);
    try {
      yield* itemsIn(body);
    } catch (error) {
      throw withCall(error, call, options.signal);
    }
  }
}

function uploadsOf(channel: string, { limit, since, ...options }: TranscriptsOptions) {
  return { path: { id: channel }, query: { ...defined({ limit, since }), ...selectionOf(options) } };
}

function listOf(id: string, { limit, ...options }: ListOptions) {
  return { path: { id }, query: { ...defined({ limit }), ...selectionOf(options) } };
}

function videosOf(videos: readonly string[], options: VideoOptions) {
  return { body: { videos: [...videos], ...textsOf(options) } };
}
