/** The origin of every request that the adapter composes itself. */
export const YOUTUBE_ORIGIN = 'https://www.youtube.com';

/** Hosts that a URL from the platform may have. No other host is ever contacted. */
const ALLOWED_HOSTS: ReadonlySet<string> = new Set(['www.youtube.com', 'youtube.com', 'm.youtube.com']);

/** Hosts that suspected bots are redirected to; clients without a consent cookie are redirected to CONSENT_HOST. */
const CAPTCHA_HOSTS: ReadonlySet<string> = new Set([
  'www.google.com',
  'google.com',
  'ipv4.google.com',
  'ipv6.google.com',
]);
const CONSENT_HOST = /^consent\.(?:[a-z]+\.)?(?:youtube|google)\.[a-z.]{2,6}$/;

type AddressKind = 'allowed' | 'captcha' | 'consent' | 'foreign';

/** Classifies a URL from the platform. Only `allowed` may be fetched. */
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
