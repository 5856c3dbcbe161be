import { CLIENTS, type Video, videoId } from '../catalogue/model.js';
import { seedOf } from '../catalogue/random.js';
import { talk } from '../catalogue/speech.js';
import { generated, manual } from '../catalogue/track.js';

/**
 * What a published video is, and can become later: `video` has captions, `translated` French ones too and `uncaptioned` none
 * yet; a `premiere` is announced; an `unavailable` one is listed, and no client plays it;
 * `just-ended` is a live stream whose captions are not there yet and `past-live` has them;
 * `processing` is an upload that is listed before it can be played.
 */
export const VIDEO_STATES = [
  'video',
  'translated',
  'uncaptioned',
  'short',
  'premiere',
  'live',
  'just-ended',
  'past-live',
  'processing',
  'members-only',
  'private',
  'unavailable',
] as const;
export type PublishedState = (typeof VIDEO_STATES)[number];

const CUES = 20;
const SHORT_SECONDS = 45;

/** Never again in this process: what a service has cached of a video belongs to that one only. */
let published = 0;

/** A new video with captions. */
export function newVideo(title: string, publishedAt: Date): Video {
  published += 1;
  const id = videoId(`pb-${String(published).padStart(8, '0')}`);
  return {
    id,
    title: `${title} (${published})`,
    state: 'ok',
    durationSeconds: 240 + (seedOf(id) % 900),
    viewCount: seedOf(id) % 5_000,
    publishedAt,
    isNew: true,
    tracks: [generated('en', () => talk(seedOf(id), CUES))],
  };
}

/** The same video in a state. One that never had captions gets generated ones with the states that have a text. */
export function inState(video: Video, state: PublishedState): Video {
  const { id, title, durationSeconds, viewCount, publishedAt, isNew, description, tags } = video;
  const tracks = video.tracks.length > 0 ? video.tracks : [generated('en', () => talk(seedOf(id), CUES))];
  const about = { ...(description !== undefined && { description }), ...(tags && { tags }), ...(isNew && { isNew }) };
  const plain: Video = { id, title, state: 'ok', durationSeconds, viewCount, publishedAt, tracks, ...about };
  switch (state) {
    case 'video':
      return plain;
    case 'translated':
      return { ...plain, tracks: [...tracks, manual('fr', talk(seedOf(id), CUES))] };
    case 'uncaptioned':
      return { ...plain, tracks: [] };
    case 'short':
      return { ...plain, short: true, durationSeconds: SHORT_SECONDS };
    case 'premiere':
      return { ...plain, state: 'upcoming', durationSeconds: 0, viewCount: 0, tracks: [] };
    case 'live':
      return { ...plain, state: 'live', durationSeconds: 0, tracks: [] };
    case 'just-ended':
      return { ...plain, pastLive: true, justEnded: true, tracks: [] };
    case 'past-live':
      return { ...plain, pastLive: true };
    case 'processing':
      return { ...plain, state: 'processing', tracks: [] };
    case 'members-only':
      return { ...plain, state: 'members-only' };
    case 'private':
      return { ...plain, state: 'private', tracks: [] };
    case 'unavailable':
      return { ...plain, errorOn: CLIENTS };
  }
}
