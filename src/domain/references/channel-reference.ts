import { parsePageUrl, REFERENCE_LENGTH_MAX } from './page-url.js';

/** A channel as a caller names it. An `id` needs no lookup; the others are paths on the platform. */
export type ChannelReference =
  | { kind: 'id'; id: string }
  /** Without the `@`, NFC-normalised. */
  | { kind: 'handle'; handle: string }
  /** The older addresses `/c/name`, `/user/name` and `/name`. */
  | { kind: 'custom' | 'user' | 'vanity'; name: string };

/** How callers name a channel, for messages and descriptions. */
export const CHANNEL_FORMS = 'a handle (@name), a channel ID (UC and 22 characters) or a channel URL on youtube.com';
/** The same in few words, for models, which read them in each conversation. */
export const CHANNEL_NAMED = 'a handle (@name), an ID (UC…) or a URL';

export const CHANNEL_ID = /^UC[A-Za-z0-9_-]{22}$/;
// Combining marks are part of the letters of many scripts (Devanagari, Thai, …); they are allowed, but not first.
const HANDLE = /^[\p{L}\p{Nd}_.·-][\p{L}\p{M}\p{Nd}_.·-]{2,29}$/u;
const NAME = /^[\p{L}\p{Nd}_.·-][\p{L}\p{M}\p{Nd}_.·-]{0,99}$/u;
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;
const TAB = /^[a-z_]{1,30}$/;

/** First path segments that belong to the platform, so that `/watch` or `/shorts/ID` is never parsed as a name. */
const PLATFORM_PAGES = new Set(
  (
    'about account ads api attribution_link browse c channel channels clip creators e embed error feed gaming generate_204 ' +
    'get_video_info hashtag howyoutubeworks iframe_api img jobs kids live live_chat login logout movies music new ' +
    'news oembed opensearch paid_memberships player_api playlist playlists post premium press redirect ' +
    'reporthistory results robots.txt s shorts show signin sitemaps source sports storefront subscription_manager ' +
    'supported_browsers t trending tv upload user v verify videos watch watch_videos yt youtubei'
  ).split(' '),
);

/**
 * Parses a reference to a channel: a handle with or without `@`, a channel ID or the URL of a channel. Undefined for
 * everything else. The text is never fetched, so the URL of another site causes no request.
 *
 * @param text the reference, percent-decoded once as by a router; all of it, or the name in it, may be encoded twice more:
 *   the platform writes handles percent-encoded, and clients encode them again
 */
export function parseChannelReference(text: string): ChannelReference | undefined {
  if (text.length > REFERENCE_LENGTH_MAX) return undefined;
  const reference = decodedName(text);
  if (reference.startsWith('@')) return parseHandle(reference.slice(1));
  const url = parsePageUrl(reference);
  // Not every host of pages has channels: `youtu.be` has videos only, and `music.youtube.com` artists.
  if (url && url.host !== 'youtube.com') return undefined;
  if (url) return parsePath(url.segments.map(decodedName));
  if (CHANNEL_ID.test(reference)) return { kind: 'id', id: reference };
  // The platform's host names match the characters of a handle, but are none.
  return parsePageUrl(`${reference}/-`) ? undefined : parseHandle(reference);
}

/** How often a name may be percent-encoded beyond what a router decodes. */
const ENCODINGS_MAX = 2;

/** A name in NFC, percent-decoded; unchanged when it is a URL, whose parts are decoded one by one, or not decodable. */
function decodedName(text: string): string {
  let name = text;
  try {
    for (let round = 0; round < ENCODINGS_MAX && name.includes('%') && !parsePageUrl(name); round += 1)
      name = decodeURIComponent(name);
  } catch {
    // `%` is no character of a name, so the rest is refused.
  }
  return name.normalize('NFC');
}

function parsePath(segments: readonly string[]): ChannelReference | undefined {
  const [first = '', ...rest] = segments;
  const prefixed = first === 'channel' || first === 'c' || first === 'user';
  const [name = '', tab, ...further] = prefixed ? rest : segments;
  if (further.length > 0 || (tab !== undefined && !TAB.test(tab))) return undefined;

  if (first === 'channel') return CHANNEL_ID.test(name) ? { kind: 'id', id: name } : undefined;
  if (first === 'c') return parseName('custom', name);
  if (first === 'user') return parseName('user', name);
  if (name.startsWith('@')) return parseHandle(name.slice(1));
  return PLATFORM_PAGES.has(name.toLowerCase()) ? undefined : parseName('vanity', name);
}

function parseHandle(handle: string): ChannelReference | undefined {
  return HANDLE.test(handle) && !IPV4.test(handle) ? { kind: 'handle', handle } : undefined;
}

function parseName(kind: 'custom' | 'user' | 'vanity', name: string): ChannelReference | undefined {
  return NAME.test(name) ? { kind, name } : undefined;
}
