/** Maximum length of a reference to a channel, a playlist or a video, in UTF-16 code units. */
export const REFERENCE_LENGTH_MAX = 2048;

/**
 * Parses a URL; undefined when it is not one. Not by `URL.canParse`: in Node.js 20 and 22, once V8 has optimized its caller,
 * it refuses hosts with characters such as `ü`.
 *
 * @param base for a relative URL
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/** The URL of a page on the platform. Segments and parameters are percent-decoded. */
interface PageUrl {
  /** In lower case, without `www.` and `m.`. On `youtu.be` the path is a video ID. */
  host: string;
  /** The path, without an empty segment at its end. */
  segments: readonly string[];
  parameters: URLSearchParams;
}

/** The source of an expression for the hosts of pages. */
export const PAGE_HOST = String.raw`(?:(?:www\.|m\.|music\.)?youtube\.com|(?:www\.)?youtube-nocookie\.com|(?:www\.)?youtu\.be)`;
const PAGE = new RegExp(`^(?:https?://?)?(?<host>${PAGE_HOST})/(?<path>[^?#]*)(?:\\?(?<query>[^#]*))?`, 'i');
/** Encoded slashes before the first one, or an encoded question mark before the first one. */
const ENCODED = /^(?:[^/]*%2F|[^?]*%3F)/i;

/**
 * Parses the URL of a page on the platform's hosts, with or without a scheme. Undefined for everything else. The text is
 * never fetched, so the URL of another site causes no request.
 *
 * @param text percent-decoded once as by a router; all of it, or its path and query, may be encoded once more
 */
export function parsePageUrl(text: string): PageUrl | undefined {
  if (text.length > REFERENCE_LENGTH_MAX) return undefined;
  try {
    const url = ENCODED.test(text) ? decodeURIComponent(text) : text;
    const { host = '', path = '', query = '' } = PAGE.exec(url)?.groups ?? {};
    if (path === '') return undefined;
    const segments = path.split('/').map(decodeURIComponent);
    if (segments.at(-1) === '') segments.pop();
    const site = host.toLowerCase().replace(/^(?:www|m)\./, '');
    return { host: site, segments, parameters: new URLSearchParams(query) };
  } catch {
    return undefined;
  }
}
