import { type FakeResponse, invalidArgument, jsonResponse, notFound } from '../rendered-bodies.js';
import type { Incoming } from '../incoming-request.js';
import { stringAt } from '../json.js';
import type { ServerState } from '../settings.js';
import type { Visitors } from '../visitors.js';
import { responseContext } from './response-context.js';

const VIDEO_PATH = /^\/(?:watch$|shorts\/|live\/)/;

/** `POST /youtubei/v1/navigation/resolve_url`: the endpoint behind a URL of the platform's site. */
export function resolveUrl(incoming: Incoming, { visitors, catalogue }: ServerState): FakeResponse {
  const text = stringAt(incoming.body, 'url');
  const url = text === undefined ? undefined : parsed(text);
  if (!url) return invalidArgument();
  const context = responseContext(incoming.client, visitors.dataFor(incoming));
  if (!/^(?:www\.|m\.)?youtube\.com$/.test(url.hostname)) {
    return jsonResponse(() => ({ responseContext: context, endpoint: { urlEndpoint: { url: text } } }));
  }
  if (VIDEO_PATH.test(url.pathname)) {
    const videoId = url.searchParams.get('v') ?? url.pathname.split('/')[2] ?? '';
    return jsonResponse(() => ({ responseContext: context, endpoint: { watchEndpoint: { videoId } } }));
  }
  const channel = catalogue.channelByPath(decoded(url.pathname));
  if (!channel) return notFound();
  return jsonResponse(() => ({
    responseContext: context,
    endpoint: {
      commandMetadata: { webCommandMetadata: { webPageType: 'WEB_PAGE_TYPE_CHANNEL' } },
      browseEndpoint: { browseId: channel.id, params: 'EgC4AQCSAwDyBgQKAjIA' },
    },
  }));
}

/** `POST /youtubei/v1/visitor_id`: a new visitor's identity, or the one that was sent. */
export function visitorId(incoming: Incoming, visitors: Visitors): FakeResponse {
  const visitorData = visitors.dataFor(incoming);
  return jsonResponse(() => ({ responseContext: responseContext(incoming.client, visitorData) }));
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function parsed(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
