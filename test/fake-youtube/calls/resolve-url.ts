import { type FakeResponse, invalidArgument, jsonResponse, notFound } from '../fake-response.js';
import { channelByPath } from '../catalogue/catalogue.js';
import type { Incoming } from '../incoming-request.js';
import { stringAt } from '../json.js';
import { responseContext, visitorDataOf } from './response-context.js';

const VIDEO_PATH = /^\/(?:watch$|shorts\/|live\/)/;

/** `POST /youtubei/v1/navigation/resolve_url`: the endpoint behind a URL of the platform's site. */
export function resolveUrl(incoming: Incoming, visitorSeed: string): FakeResponse {
  const text = stringAt(incoming.body, 'url');
  if (text === undefined || !URL.canParse(text)) return invalidArgument();
  const url = new URL(text);
  const context = responseContext(incoming.client, visitorDataOf(incoming.client, visitorSeed));
  if (!/^(?:www\.|m\.)?youtube\.com$/.test(url.hostname)) {
    return jsonResponse(() => ({ responseContext: context, endpoint: { urlEndpoint: { url: text } } }));
  }
  if (VIDEO_PATH.test(url.pathname)) {
    const videoId = url.searchParams.get('v') ?? url.pathname.split('/')[2] ?? '';
    return jsonResponse(() => ({ responseContext: context, endpoint: { watchEndpoint: { videoId } } }));
  }
  const channel = channelByPath(decoded(url.pathname));
  if (!channel) return notFound();
  return jsonResponse(() => ({
    responseContext: context,
    endpoint: {
      commandMetadata: {
        webCommandMetadata: {
          url: '/youtubei/v1/navigation/resolve_url',
          webPageType: 'WEB_PAGE_TYPE_CHANNEL',
          rootVe: 3611,
          apiUrl: '/youtubei/v1/browse',
        },
        resolveUrlCommandMetadata: { isVanityUrl: true },
      },
      browseEndpoint: { browseId: channel.id, params: 'EgC4AQCSAwDyBgQKAjIA' },
    },
  }));
}

/** `POST /youtubei/v1/visitor_id`: a new visitor's identity. */
export function visitorId(incoming: Incoming, visitorSeed: string): FakeResponse {
  const visitorData = visitorDataOf(incoming.client, visitorSeed);
  return jsonResponse(() => ({ responseContext: responseContext(incoming.client, visitorData) }));
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
