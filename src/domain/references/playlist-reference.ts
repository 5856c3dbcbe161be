import { parsePageUrl } from './page-url.js';

/**
 * A playlist as a caller names it. Of these kinds only `playlist` can be read: a `mix` is generated for each viewer, and a
 * `personal` list belongs to the account that is signed in.
 */
interface PlaylistReference {
  kind: 'playlist' | 'mix' | 'personal';
  id: string;
}

/** Why a list that is not a playlist is refused, for the message of an `InvalidRequestError`. */
export const UNREADABLE_LISTS: Readonly<Record<Exclude<PlaylistReference['kind'], 'playlist'>, string>> = {
  mix: 'A mix (RD…) is generated for each viewer and has no list of videos. Use the ID or URL of a playlist.',
  personal:
    'Watch later (WL), liked videos (LL, LM) and the history (HL) can only be read by their owner. Use the ID or URL of a playlist.',
};

/**
 * Playlists made by users (`PL`, older `EC`); of a channel by the platform (`UU`, `UUSH`, `UULF`, `UULV`, …: its uploads;
 * `FL`: its favorites; `PU`: its popular uploads); albums (`OLAK5uy_`) and editorial playlists (`RDCLAK5uy_`) of YouTube
 * Music.
 */
const PLAYLIST_ID =
  /^(?:(?:PL|EC)[A-Za-z0-9_-]{10,64}|(?:UU(?:[A-Z]{2})?|FL|PU)[A-Za-z0-9_-]{22}|(?:OLAK|RDCLAK)5uy_[A-Za-z0-9_-]{10,64})$/;
/** `UL` is the older form of a mix that starts with a video. */
const MIX_ID = /^(?:RD[A-Za-z0-9_-]{0,64}|UL[A-Za-z0-9_-]{11})$/;
/** Liked videos of a channel are `LL` and the end of its ID. */
const PERSONAL_ID = /^(?:WL|LL|LM|HL|LL[A-Za-z0-9_-]{22})$/;

/** Pages that can show a playlist, by their first segment. */
const PLAYLIST_PAGES = new Set(['playlist', 'watch', 'embed', 'shorts', 'live', 'v']);

/** Pages whose second segment is the ID of a playlist. */
const NAMED_PAGES = new Set(['browse', 'show']);

/**
 * Parses a reference to a playlist: its ID, also as the platform's pages are named (`VL` and the ID), or the URL of a page
 * with the parameter `list` (`/playlist?list=`, `/watch?v=…&list=`) or with the ID as its name (`/browse/VL…`, `/show/VL…`).
 * Undefined for everything else. The text is never fetched, so the URL of another site causes no
 * request.
 *
 * @param text the reference, percent-decoded once as by a router; a URL may be encoded once more
 */
export function parsePlaylistReference(text: string): PlaylistReference | undefined {
  const url = parsePageUrl(text);
  if (!url) return parseId(text);
  const [page = '', id = ''] = url.segments;
  if (NAMED_PAGES.has(page)) return url.segments.length === 2 ? parseId(id) : undefined;
  return url.host === 'youtu.be' || PLAYLIST_PAGES.has(page) ? parseId(url.parameters.get('list') ?? '') : undefined;
}

function parseId(text: string): PlaylistReference | undefined {
  const id = text.replace(/^VL/, '');
  if (PLAYLIST_ID.test(id)) return { kind: 'playlist', id };
  if (MIX_ID.test(id)) return { kind: 'mix', id };
  return PERSONAL_ID.test(id) ? { kind: 'personal', id } : undefined;
}
