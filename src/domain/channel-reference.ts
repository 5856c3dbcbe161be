/** A channel as a caller names it. An `id` needs no lookup; the others are paths on the platform. */
export type ChannelReference =
  | { kind: 'id'; id: string }
  /** Without the `@`, NFC-normalised. */
  | { kind: 'handle'; handle: string }
  /** The older addresses `/c/name`, `/user/name` and `/name`. */
  | { kind: 'custom' | 'user' | 'vanity'; name: string };

/** Maximum length of a reference, in UTF-16 code units. */
export const REFERENCE_LENGTH_MAX = 2048;

const CHANNEL_ID = /^UC[A-Za-z0-9_-]{22}$/;
// Combining marks are part of the letters of many scripts (Devanagari, Thai, …); they are allowed, but not first.
const HANDLE = /^[\p{L}\p{Nd}_.·-][\p{L}\p{M}\p{Nd}_.·-]{2,29}$/u;
const NAME = /^[\p{L}\p{Nd}_.·-][\p{L}\p{M}\p{Nd}_.·-]{0,99}$/u;
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;
const PLATFORM_URL = /^(?:https?:\/\/?)?(?:www\.|m\.)?youtube\.com\//i;
const TAB = /^[a-z_]{1,30}$/;

/** First path segments that belong to the platform, so that `/watch` or `/shorts/ID` is never parsed as a name. */
const PLATFORM_PAGES = new Set(
  (
    'about account ads api attribution_link c channel channels clip creators e embed error feed gaming generate_204 ' +
    'get_video_info hashtag howyoutubeworks iframe_api img jobs kids live live_chat login logout movies music new ' +
    'news oembed opensearch paid_memberships player_api playlist playlists post premium press redirect ' +
    'reporthistory results robots.txt s shorts signin sitemaps source sports storefront subscription_manager ' +
    'supported_browsers t trending tv upload user v verify videos watch watch_videos yt youtubei'
  ).split(' '),
);

/**
 * Parses a reference to a channel: a handle with or without `@`, a channel ID or the URL of a channel. Undefined for
 * everything else. The text is never fetched, so the URL of another site causes no request.
 *
 * @param text the reference, percent-decoded once as by a router; the path of a URL may be encoded once more
 */
export function parseChannelReference(text: string): ChannelReference | undefined {
  if (text.length > REFERENCE_LENGTH_MAX) return undefined;
  const reference = text.normalize('NFC');
  const platform = PLATFORM_URL.exec(reference);
  if (platform) return parsePath(reference.slice(platform[0].length));
  if (CHANNEL_ID.test(reference)) return { kind: 'id', id: reference };
  if (reference.startsWith('@')) return parseHandle(reference.slice(1));
  // The platform's host name and IP addresses match the characters of a handle, but are none.
  if (PLATFORM_URL.test(`${reference}/`) || IPV4.test(reference)) return undefined;
  return parseHandle(reference);
}

function parsePath(path: string): ChannelReference | undefined {
  const segments = decodeSegments(path.split(/[?#]/, 1)[0] ?? '');
  if (!segments) return undefined;
  if (segments.at(-1) === '') segments.pop();
  const [first = '', second, third] = segments;
  const prefixed = first === 'channel' || first === 'c' || first === 'user';
  const tab = prefixed ? third : second;
  if (segments.length > (prefixed ? 3 : 2) || (tab !== undefined && !TAB.test(tab))) return undefined;

  if (first === 'channel') return CHANNEL_ID.test(second ?? '') ? { kind: 'id', id: second ?? '' } : undefined;
  if (first === 'c') return parseName('custom', second);
  if (first === 'user') return parseName('user', second);
  if (first.startsWith('@')) return parseHandle(first.slice(1));
  return PLATFORM_PAGES.has(first.toLowerCase()) ? undefined : parseName('vanity', first);
}

function decodeSegments(path: string): string[] | undefined {
  try {
    return path.split('/').map((segment) => decodeURIComponent(segment).normalize('NFC'));
  } catch {
    return undefined;
  }
}

function parseHandle(handle: string): ChannelReference | undefined {
  return HANDLE.test(handle) && !IPV4.test(handle) ? { kind: 'handle', handle } : undefined;
}

function parseName(kind: 'custom' | 'user' | 'vanity', name = ''): ChannelReference | undefined {
  return NAME.test(name) ? { kind, name } : undefined;
}
