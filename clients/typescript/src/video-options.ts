import { defined, type CallOptions } from './http.js';
import type { operations } from './schema.js';

export interface VideoOptions extends CallOptions {
  /** Language codes in order of preference; `*`, as the last, is the original language of the video. */
  languages?: readonly string[];
  /** Whether each of the languages that a video has is returned (`all`, the default), or the first of them. */
  match?: 'all' | 'first';
  /** What to add to the metadata of each video. */
  include?: readonly ('description' | 'chapters' | 'tags')[];
  /** Joins segments to chunks of about this many seconds (15-600). */
  chunkSeconds?: number;
}

export interface ListOptions extends VideoOptions {
  /** The number of videos; 25 by default, at most 100. */
  limit?: number;
  /** Only videos of these kinds, which `limit` counts. */
  kinds?: readonly ('video' | 'short' | 'live' | 'upcoming')[];
}

/** Those of the document: a parameter that is missing below is an error of the types. */
type TextParameters = Omit<NonNullable<operations['getVideoTranscript']['parameters']['query']>, 'format'>;

/** The parameters of every operation that is about transcripts. Other options, of a variable that calls share, are left out. */
export function textsOf({ languages, match, include, chunkSeconds }: VideoOptions) {
  const texts = { languages: languages?.join(','), match, include: include?.join(','), chunkSeconds };
  return defined(texts satisfies Record<keyof TextParameters, unknown>);
}

/** The same with those that select videos of a list. */
export function selectionOf({ kinds, ...options }: Omit<ListOptions, 'limit'>) {
  return { ...defined({ kinds: kinds?.join(',') }), ...textsOf(options) };
}
