import { defined, itemsOf, type CallOptions, type Http } from './http.js';
import type { ParametersOf, ResultOf } from './operations.js';
import type { components } from './schema.js';

type Schemas = components['schemas'];
export type LibraryVideo = Schemas['LibraryVideo'];
export type SearchResult = Schemas['SearchResult'];
export type SearchResults = Schemas['SearchResults'];

/** Which part of the library is meant. */
export type LibraryOptions = CallOptions &
  Omit<NonNullable<ParametersOf<'listLibraryVideos'>['query']>, 'after' | 'limit' | 'as' | 'chunkSeconds'>;
export type SearchOptions = CallOptions & Omit<ParametersOf<'searchLibrary'>['query'], 'q'>;

/** What jobs and subscriptions with `keep` have kept. Every method throws ChannelTranscriptsError. */
export class Library {
  constructor(private readonly http: Http) {}

  /** Returns a page of the passages that a query finds, such as `"rising tide" harbour -ebb`. */
  search(
    q: string,
    { channel, label, language, publishedAfter, sort, limit, after, ...options }: SearchOptions = {},
  ): Promise<SearchResults> {
    const query = { q, ...defined({ channel, label, language, publishedAfter, sort, limit, after }) };
    return this.http.call('searchLibrary', { query }, options);
  }

  /** Yields the videos, newest first. */
  videos({ channel, label, language, publishedAfter, ...options }: LibraryOptions = {}): AsyncGenerator<
    LibraryVideo,
    void,
    undefined
  > {
    type Position = NonNullable<ResultOf<'listLibraryVideos'>['next']>;
    return itemsOf<LibraryVideo, Position>(async (after) => {
      const query = defined({ channel, label, language, publishedAfter, after });
      const { videos, next } = await this.http.call('listLibraryVideos', { query }, options);
      return [videos, next];
    });
  }

  /** Deletes the texts of a video. */
  delete(video: string, options?: CallOptions): Promise<void> {
    return this.http.call('deleteLibraryVideo', { path: { id: video } }, options);
  }

  /** Deletes the texts of all videos of a channel. Returns the number of videos. */
  async deleteChannel(channel: string, options?: CallOptions): Promise<number> {
    return (await this.http.call('deleteLibraryChannel', { query: { channel } }, options)).videos;
  }
}
