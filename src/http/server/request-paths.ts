import type { IncomingMessage, Server } from 'node:http';
import { unescape } from 'node:querystring';
import { PAGE_HOST } from '../../domain/references/page-url.js';

/** The scheme and the authority of a request target that is a whole URL, as it is sent to a proxy. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

/** A `.` or `..` segment, also percent-encoded: proxies resolve them, this service does not. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * Makes a path of every request target before Express reads it, which would respond to one that it cannot parse in HTML.
 *
 * @param encodeRawUrl encodes a URL that is sent raw as an ID
 */
export function normalizeRequestUrls(server: Server, encodeRawUrl: (target: string) => string): void {
  server.prependListener('request', (request: IncomingMessage) => {
    // A request target has no fragment, but `url.parse` would remove one.
    const target = (request.url ?? '').replace(ORIGIN, '').replaceAll('#', '%23');
    request.url = encodeRawUrl(target.startsWith('/') ? target : `/${target}`);
  });
}

/**
 * Encodes a URL that is sent raw as the ID of a route: its slashes, or that of a page together with its own query, whose `?`
 * would end the path. Undefined for other targets.
 *
 * @param path with the ID, e.g. `/channels/{id}/transcripts`
 */
export function rawUrlEncoder(path: string, ids: 'channel' | 'page'): (target: string) => string | undefined {
  const [before = '', end = ''] = path.split('{id}');
  const rest = `(?<rest>${end}(?:\\?.*)?)$`;
  const page = new RegExp(`^(?<url>(?:https?://?)?${PAGE_HOST}/[^?]*(?<!${end})\\?[^/]*)${rest}`, 'is');
  const withSlashes = new RegExp(`^(?<id>[^/?]+/[^?]*[^/?]/?)${rest}`, 's');
  return (target) => {
    if (!target.startsWith(before)) return undefined;
    const given = target.slice(before.length);
    const ofPage = ids === 'page' ? page.exec(given)?.groups : undefined;
    if (ofPage) return `${before}${encodeURIComponent(ofPage['url'] ?? '')}${ofPage['rest']}`;
    const { id, rest: after = '' } = withSlashes.exec(given)?.groups ?? {};
    if (id === undefined || DOT_SEGMENT.test(`/${id}/`)) return undefined;
    return `${before}${id.replaceAll('/', '%2F')}${after}`;
  };
}

/** Layers of percent-encoding that are decoded; clients encode once or twice. */
const LAYERS_MAX = 16;
const ILLEGIBLE = '(encoded too often)';

/**
 * A path for a log or a trace: decoded through all layers of encoding, even where it is malformed, because a key can only
 * be redacted in its decoded form.
 */
export function legiblePath(path: string): string {
  let text = path;
  for (let layer = 0; layer < LAYERS_MAX; layer += 1) {
    const decoded = unescape(text);
    if (decoded === text) return text;
    text = decoded;
  }
  return ILLEGIBLE;
}
