/** The origin of every request that the adapter composes itself. */
export const YOUTUBE_ORIGIN = 'https://www.youtube.com';

/** Hosts that a URL given by the platform may lead to. Nothing else is ever contacted. */
const ALLOWED_HOSTS: ReadonlySet<string> = new Set(['www.youtube.com', 'youtube.com', 'm.youtube.com']);

/** Where the platform redirects suspected bots, and clients without a consent cookie. */
const CAPTCHA_HOSTS: ReadonlySet<string> = new Set([
  'www.google.com',
  'google.com',
  'ipv4.google.com',
  'ipv6.google.com',
]);
const CONSENT_HOST = /^consent\.(?:[a-z]+\.)?(?:youtube|google)\.[a-z.]{2,6}$/;

export type AddressKind = 'allowed' | 'captcha' | 'consent' | 'foreign';

/** What a URL that came from the platform leads to. Only `allowed` may be fetched. */
export function addressKind(url: URL): AddressKind {
  if (url.protocol !== 'https:' || url.port !== '' || url.username !== '' || url.password !== '') return 'foreign';
  if (ALLOWED_HOSTS.has(url.hostname)) return 'allowed';
  if (CONSENT_HOST.test(url.hostname)) return 'consent';
  return CAPTCHA_HOSTS.has(url.hostname) && url.pathname.startsWith('/sorry') ? 'captcha' : 'foreign';
}

/**
 * The URL that is contacted. A base URL (an egress gateway, or the fake YouTube) replaces the platform's origin and
 * prefixes its own path: `https://gateway/yt` + `/api/timedtext?v=…`.
 */
export function contactedUrl(url: URL, baseUrl: URL | null): URL {
  if (!baseUrl) return url;
  return new URL(`${baseUrl.pathname.replace(/(?<!\/)\/+$/, '')}${url.pathname}${url.search}`, baseUrl.origin);
}

/** Where a redirect leads, in the platform's own addresses; null when the response is no redirect. */
export function redirectTarget(
  response: { status: number; headers: Readonly<Record<string, string | string[] | undefined>> },
  from: URL,
  baseUrl: URL | null,
): URL | null {
  const { location } = response.headers;
  if (![301, 302, 303, 307, 308].includes(response.status) || typeof location !== 'string') return null;
  if (!URL.canParse(location, from.href)) return new URL('invalid:');
  const target = new URL(location, from.href);
  // A gateway may name itself in redirects that it passes on; no other host can be meant.
  if (baseUrl && target.origin === baseUrl.origin) {
    const prefix = baseUrl.pathname.replace(/(?<!\/)\/+$/, '');
    const path = target.pathname.startsWith(`${prefix}/`) ? target.pathname.slice(prefix.length) : target.pathname;
    return new URL(`${path}${target.search}`, from.origin);
  }
  return target;
}
