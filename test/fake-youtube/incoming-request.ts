import { type Client, CLIENTS } from './catalogue/model.js';
import { type JsonObject, parseJsonObject, stringAt } from './json.js';

export const REQUEST_KINDS = [
  'resolve',
  'visitor',
  'browse-uploads',
  'browse-shorts',
  'browse-playlist',
  'browse-channel',
  'browse-continuation',
  'feed',
  'player',
  'reel',
  'timedtext',
  'page',
  'po-token',
  'client-version',
  'other',
] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** A parsed request. */
export interface Incoming {
  kind: RequestKind;
  method: string;
  /** Including the query. */
  path: string;
  url: URL;
  headers: NodeJS.Dict<string | string[]>;
  /** Undefined unless it is a JSON object. */
  body: JsonObject | undefined;
  client: Client | null;
  clientVersion: string | null;
  videoId: string | null;
  channelId: string | null;
  /** The `$fields` parameter. */
  fields: string | null;
  visitorData: string | null;
  /** The address that the platform sees: the peer of the connection. */
  egress: string;
}

const CLIENT_NUMBERS: Record<string, Client> = {
  1: 'WEB',
  3: 'ANDROID',
  5: 'IOS',
  28: 'ANDROID_VR',
  101: 'VISIONOS',
};

const GET_KINDS: Record<string, RequestKind> = {
  '/feeds/videos.xml': 'feed',
  '/api/timedtext': 'timedtext',
  '/iframe_api': 'page',
  '/sw.js_data': 'client-version',
};
const POST_KINDS: Record<string, RequestKind> = {
  '/youtubei/v1/navigation/resolve_url': 'resolve',
  '/youtubei/v1/visitor_id': 'visitor',
  '/youtubei/v1/player': 'player',
  '/youtubei/v1/reel/reel_item_watch': 'reel',
  '/get_pot': 'po-token',
};

export function readIncoming(
  method: string,
  path: string,
  headers: NodeJS.Dict<string | string[]>,
  bodyText: string,
  egress: string,
): Incoming {
  const url = new URL(path, 'http://fake-youtube.invalid');
  const body = bodyText === '' ? undefined : parseJsonObject(bodyText);
  const kind = kindOf(method, url.pathname, body);
  const visitorHeader = headers['x-goog-visitor-id'];
  return {
    kind,
    method,
    path,
    url,
    headers,
    body,
    client: kind === 'timedtext' ? clientOfCaptionUrl(url.searchParams) : clientOf(kind, headers, body),
    clientVersion: stringAt(body, 'context', 'client', 'clientVersion') ?? null,
    videoId:
      url.searchParams.get('v') ??
      stringAt(body, 'videoId') ??
      stringAt(body, 'playerRequest', 'videoId') ??
      (kind === 'po-token' ? stringAt(body, 'content_binding') : undefined) ??
      null,
    channelId: channelOf(url, body),
    fields: url.searchParams.get('$fields'),
    visitorData:
      stringAt(body, 'context', 'client', 'visitorData') ?? (typeof visitorHeader === 'string' ? visitorHeader : null),
    egress,
  };
}

function kindOf(method: string, pathname: string, body: JsonObject | undefined): RequestKind {
  if (method === 'GET') return GET_KINDS[pathname] ?? (/^\/s\/player\//.test(pathname) ? 'page' : 'other');
  if (method !== 'POST') return 'other';
  return POST_KINDS[pathname] ?? (pathname === '/youtubei/v1/browse' ? browseKind(body) : 'other');
}

function browseKind(body: JsonObject | undefined): RequestKind {
  if (typeof body?.['continuation'] === 'string') return 'browse-continuation';
  const browseId = stringAt(body, 'browseId') ?? '';
  if (browseId.startsWith('VLUUSH')) return 'browse-shorts';
  if (browseId.startsWith('VLUU')) return 'browse-uploads';
  return browseId.startsWith('VL') ? 'browse-playlist' : 'browse-channel';
}

function clientOf(
  kind: RequestKind,
  headers: NodeJS.Dict<string | string[]>,
  body: JsonObject | undefined,
): Client | null {
  // youtubei.js writes `iOS`, the app `IOS`.
  const name = stringAt(body, 'context', 'client', 'clientName')?.toUpperCase();
  const number = headers['x-youtube-client-name'];
  const client =
    CLIENTS.find((known) => known === name) ?? CLIENT_NUMBERS[typeof number === 'string' ? number : ''] ?? null;
  return kind === 'reel' && client === 'ANDROID' ? 'ANDROID_REEL' : client;
}

/** A caption URL names the client that it was issued to in `ei`. */
function clientOfCaptionUrl(query: URLSearchParams): Client | null {
  const name = Buffer.from(query.get('ei') ?? '', 'base64url')
    .toString()
    .split(':')[0];
  return CLIENTS.find((client) => client === name) ?? null;
}

function channelOf(url: URL, body: JsonObject | undefined): string | null {
  const inQuery = url.searchParams.get('channel_id');
  if (inQuery !== null) return inQuery;
  const browseId = stringAt(body, 'browseId');
  const uploads = /^VLUU(?:SH|LF|LV|MO)?([A-Za-z0-9_-]{22})$/.exec(browseId ?? '');
  return uploads ? `UC${uploads[1]}` : (browseId ?? null);
}
