import type { IncomingMessage, Server } from 'node:http';
import { parse, type ParsedUrlQuery } from 'node:querystring';
import type { NextFunction, Request, Response } from 'express';
import { PAGE_HOST, parseUrl } from '../domain/page-url.js';
import { requestContext } from './request-context.js';
import { DOT_SEGMENT } from './routes.js';
import { MethodNotAllowedError, RouteNotFoundError } from './routing-errors.js';

/** Replaces a request target that cannot be parsed; `rejectUndecodablePath` rejects it. */
const UNPARSABLE = '/%';

/** A request target in absolute form: the scheme and the authority, then the rest. */
const ABSOLUTE_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]+((?:[/?#].*)?)$/is;

/** The URL of a page as the ID of a video or playlist, whose own query is not encoded: its `?` would end the path. */
const RAW_PAGE_URL = new RegExp(
  `^/(?<route>videos|playlists)/(?<url>(?:https?://?)?${PAGE_HOST}/[^?]*(?<!/transcripts?)\\?[^/]*)/(?<rest>transcripts?(?:\\?.*)?)$`,
  'is',
);

/** Any other ID whose slashes are not encoded. */
const RAW_ID =
  /^\/(?<route>channels|videos|playlists)\/(?<id>[^/?]+\/[^?]*[^/?]\/?)\/(?<rest>(?:transcripts?|uploads)(?:\?.*)?)$/s;

/**
 * Reduces the target of every request, which a proxy may send as an absolute URL, to its path and query without resolving
 * or decoding anything, and encodes a URL that is sent raw as an ID, as by gateways that decode `%2F`. Express would respond to a target that it
 * cannot parse in HTML, before all middleware.
 */
export function normalizeRequestUrls(server: Server): void {
  server.prependListener('request', (request: IncomingMessage) => {
    request.url = encodeRawUrl(pathAndQuery(request.url ?? ''));
  });
}

function pathAndQuery(target: string): string {
  // A request target has no fragment, but `url.parse` would remove one.
  const address = target.replaceAll('#', '%23');
  if (address.startsWith('/') || address === '*') return address;
  const [, rest] = ABSOLUTE_FORM.exec(address) ?? [];
  // The path is cut from the text, because the URL parser resolves `/x/../metrics` to `/metrics`.
  if (rest === undefined || !parseUrl(address)) return UNPARSABLE;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Encodes a URL that is sent raw as an ID, that of a page together with its query; other targets stay as they are. */
export function encodeRawUrl(target: string): string {
  const page = RAW_PAGE_URL.exec(target)?.groups;
  if (page?.['url'] !== undefined) return `/${page['route']}/${encodeURIComponent(page['url'])}/${page['rest']}`;
  const { route, id, rest } = RAW_ID.exec(target)?.groups ?? {};
  if (id === undefined || DOT_SEGMENT.test(`/${id}/`)) return target;
  return `/${route}/${id.replaceAll('/', '%2F')}/${rest}`;
}

/** Middleware: leads browsers from the root to the documentation. For other clients the root is an unknown path. */
export function leadBrowsersToDocs(request: Request, response: Response, next: NextFunction): void {
  const asked = request.path === '/' && (request.method === 'GET' || request.method === 'HEAD');
  if (!asked || request.accepts(['application/json', 'text/html']) !== 'text/html') {
    next();
    return;
  }
  response.vary('Accept');
  response.redirect('/docs');
}

/** Parses all parameters of a query; by default those after the thousandth are ignored. */
export function readQuery(query: string | null): ParsedUrlQuery {
  return parse(query ?? '', undefined, undefined, { maxKeys: 0 });
}

/**
 * Middleware: passes only the routes of the controllers and of `/docs`. Responds with 405 and `Allow` when the path exists
 * for other methods, with 404 otherwise.
 */
export function rejectUnknownPaths(request: Request, _response: Response, next: NextFunction): void {
  const { route } = requestContext(request);
  if (!route) next(new RouteNotFoundError());
  else next(route.methods.includes(request.method) ? undefined : new MethodNotAllowedError(route.methods.join(', ')));
}

/** A percent-encoded byte, whose percent sign may itself be encoded any number of times. */
const ENCODED = /%(?:25)*[0-9a-f]{2}/gi;
const SEQUENCE = /(?:%[0-9a-f]{2})+/gi;
/** Each layer triples the length of a text, so that no request line has room for more. */
const LAYERS_MAX = 16;
const ILLEGIBLE = '(encoded too often)';

/**
 * A path for a log or a trace: decoded through all layers of encoding, even where it is malformed, because a key can only
 * be redacted in its decoded form.
 */
export function legiblePath(path: string): string {
  let text = path;
  for (let layer = 0; layer < LAYERS_MAX; layer += 1) {
    const decoded = text.replace(ENCODED, (code) => `%${code.slice(-2)}`).replace(SEQUENCE, decodedSequence);
    if (decoded === text) return text;
    text = decoded;
  }
  return ILLEGIBLE;
}

/** Decodes only the ASCII characters of a sequence that is not valid UTF-8. */
function decodedSequence(sequence: string): string {
  try {
    return decodeURIComponent(sequence);
  } catch {
    return sequence.replace(/%[0-7][0-9a-f]/gi, decodeURIComponent);
  }
}
