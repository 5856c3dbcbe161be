import { videoById } from './catalogue.js';
import { HARBOUR_LIGHT } from './harbour-light.js';
import { type Channel, type Video, videoId } from './model.js';
import { FOG_SIGNAL, TIDEWATER } from './other-channels.js';

/** A playlist that a user made, or an album. The lists of a channel's uploads are made from its uploads instead. */
export interface Playlist {
  id: string;
  title: string;
  /** Whose playlist it is; the videos can be of any channel. */
  owner: Channel;
  state: 'public' | 'private';
  /** In the order of the playlist. */
  videos: () => readonly Video[];
}

/** `PL` and 32 characters. */
export function playlistId(name: string): string {
  return `PL${name.padEnd(32, '_')}`;
}

function named(...names: string[]): () => readonly Video[] {
  return () =>
    names.map((name) => {
      const found = videoById(videoId(name));
      if (!found) throw new Error(`There is no video ${name}`);
      return found.video;
    });
}

const PLAIN = { owner: TIDEWATER, state: 'public' } as const;

/** Videos of two channels, each with a transcript, in an order of its own. */
export const SATURDAY: Playlist = {
  ...PLAIN,
  id: playlistId('saturday-in-the-yard'),
  title: 'A Saturday in the yard',
  videos: named('tw-bread', 'hl-dinghy', 'tw-chowder', 'hl-sharp', 'tw-mackerel'),
};

/** That of the examples in the OpenAPI document. */
export const BOATS: Playlist = {
  id: 'PLharbourlight-boats',
  title: 'Boats from start to launch',
  owner: HARBOUR_LIGHT,
  state: 'public',
  videos: named('hl-dinghy', 'hl-silent'),
};

export const EMPTY: Playlist = {
  ...PLAIN,
  id: playlistId('empty-hold'),
  title: 'The empty hold',
  videos: () => [],
};

export const PRIVATE: Playlist = {
  ...PLAIN,
  id: playlistId('captains-own'),
  title: 'The captain’s own',
  state: 'private',
  videos: named('tw-chowder'),
};

/** With videos that were deleted or made private since, and others that have no transcript. */
export const WITH_GAPS: Playlist = {
  ...PLAIN,
  id: playlistId('torn-net'),
  title: 'The torn net',
  videos: named('tw-chowder', 'hl-private', 'tw-bread', 'hl-deleted', 'ps-gone', 'hl-crew', 'hl-tidecam', 'tw-pickles'),
};

/** 230 videos on three pages, oldest first. */
export const LONG: Playlist = {
  ...PLAIN,
  id: playlistId('every-programme'),
  title: 'Every programme from the first',
  owner: FOG_SIGNAL,
  videos: () => [...FOG_SIGNAL.uploads()].reverse(),
};

export const SHORTS_ONLY: Playlist = {
  ...PLAIN,
  id: playlistId('under-a-minute'),
  title: 'Under a minute',
  owner: HARBOUR_LIGHT,
  videos: () => HARBOUR_LIGHT.uploads().filter(({ short }) => short),
};

/** An album of YouTube Music. */
export const ALBUM: Playlist = {
  ...PLAIN,
  id: `OLAK5uy_${'galley-songs'.padEnd(33, '_')}`,
  title: 'Album - Galley songs',
  videos: named('tw-mackerel', 'tw-pickles'),
};

export const PLAYLISTS: readonly Playlist[] = [SATURDAY, BOATS, EMPTY, PRIVATE, WITH_GAPS, LONG, SHORTS_ONLY, ALBUM];

export function playlistById(id: string): Playlist | undefined {
  return PLAYLISTS.find((playlist) => playlist.id === id);
}
