import type { IncomingMessage, Server } from 'node:http';
import { unescape } from 'node:querystring';
import { PAGE_HOST } from '../domain/page-url.js';

/** The scheme and the authority of a request target that is a whole URL, as it is sent to a proxy. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

/** The URL of a page as the ID of a video or playlist, whose own query is not encoded: its `?` would end the path. */
const RAW_PAGE_URL = new RegExp(
  `^/(?<route>videos|playlists)/(?<url>(?:https?://?)?${PAGE_HOST}/[^?]*(?<!/transcripts?)\\?[^/]*)/(?<rest>transcripts?(?:\\?.*)?)$`,
  'is',
);

/** Any other ID whose slashes are not encoded. */
const RAW_ID =
  /^\/(?<route>channels|videos|playlists)\/(?<id>[^/?]+\/[^?]*[^/?]\/?)\/(?<rest>(?:transcripts?|uploads)(?:\?.*)?)$/s;

/** A `.` or `..` segment, also percent-encoded: proxies resolve them, this service does not. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * Makes a path of every request target before Express reads it, which would respond to one that it cannot parse in HTML.
 * Also encodes a URL that is sent raw as an ID, as by gateways that decode `%2F`.
 */
export function normalizeRequestUrls(server: Server): void {
  server.prependListener('request', (request: IncomingMessage) => {
    // A request target has no fragment, but `url.parse` would remove one.
    const target = (request.url ?? '').replace(ORIGIN, '').replaceAll('#', '%23');
    request.url = encodeRawUrl(target.startsWith('/') ? target : `/${target}`);
  });
}

/** Encodes a URL that is sent raw as an ID, that of a page together with its query; other targets stay as they are. */
export function encodeRawUrl(target: string): string {
  const page = RAW_PAGE_URL.exec(target)?.groups;
  if (page?.['url'] !== undefined) return `/${page['route']}/${encodeURIComponent(page['url'])}/${page['rest']}`;
  const { route, id, rest } = RAW_ID.exec(target)?.groups ?? {};
  if (id === undefined || DOT_SEGMENT.test(`/${id}/`)) return target;
  return `/${route}/${id.replaceAll('/', '%2F')}/${rest}`;
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
