import { type Client, CLIENTS } from './catalogue/model.js';
import { clientOfCaptionUrl } from './calls/caption-url.js';
import { type JsonObject, parseJsonObject, stringAt } from './json.js';

export const REQUEST_KINDS = [
  'resolve',
  'visitor',
  'browse-uploads',
  'browse-shorts',
  'browse-channel',
  'browse-continuation',
  'feed',
  'player',
  'reel',
  'timedtext',
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
  videoId: string | null;
  channelId: string | null;
  /** The `$fields` parameter. */
  fields: string | null;
  visitorData: string | null;
}

const CLIENT_NUMBERS: Record<string, Client> = { 1: 'WEB', 3: 'ANDROID', 28: 'ANDROID_VR', 101: 'VISIONOS' };

export function readIncoming(
  method: string,
  path: string,
  headers: NodeJS.Dict<string | string[]>,
  bodyText: string,
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
    client: kind === 'timedtext' ? clientOfCaptionUrl(url.searchParams) : clientOf(headers, body),
    videoId:
      url.searchParams.get('v') ?? stringAt(body, 'videoId') ?? stringAt(body, 'playerRequest', 'videoId') ?? null,
    channelId: channelOf(url, body),
    fields: url.searchParams.get('$fields'),
    visitorData:
      stringAt(body, 'context', 'client', 'visitorData') ?? (typeof visitorHeader === 'string' ? visitorHeader : null),
  };
}

function kindOf(method: string, pathname: string, body: JsonObject | undefined): RequestKind {
  if (method === 'GET' && pathname === '/feeds/videos.xml') return 'feed';
  if (method === 'GET' && pathname === '/api/timedtext') return 'timedtext';
  if (method !== 'POST') return 'other';
  if (pathname === '/youtubei/v1/navigation/resolve_url') return 'resolve';
  if (pathname === '/youtubei/v1/visitor_id') return 'visitor';
  if (pathname === '/youtubei/v1/player') return 'player';
  if (pathname === '/youtubei/v1/reel/reel_item_watch') return 'reel';
  return pathname === '/youtubei/v1/browse' ? browseKind(body) : 'other';
}

function browseKind(body: JsonObject | undefined): RequestKind {
  if (typeof body?.['continuation'] === 'string') return 'browse-continuation';
  const browseId = stringAt(body, 'browseId') ?? '';
  if (browseId.startsWith('VLUUSH')) return 'browse-shorts';
  return browseId.startsWith('VL') ? 'browse-uploads' : 'browse-channel';
}

function clientOf(headers: NodeJS.Dict<string | string[]>, body: JsonObject | undefined): Client | null {
  const name = stringAt(body, 'context', 'client', 'clientName');
  const number = headers['x-youtube-client-name'];
  return CLIENTS.find((client) => client === name) ?? CLIENT_NUMBERS[typeof number === 'string' ? number : ''] ?? null;
}

function channelOf(url: URL, body: JsonObject | undefined): string | null {
  const inQuery = url.searchParams.get('channel_id');
  if (inQuery !== null) return inQuery;
  const browseId = stringAt(body, 'browseId');
  const uploads = /^VLUU(?:SH|LF|LV|MO)?([A-Za-z0-9_-]{22})$/.exec(browseId ?? '');
  return uploads ? `UC${uploads[1]}` : (browseId ?? null);
}
