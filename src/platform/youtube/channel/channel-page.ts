import {
  CHANNEL_ID,
  type ChannelReference,
  parseChannelReference,
} from '../../../domain/references/channel-reference.js';
import { parseUrl } from '../../../domain/references/page-url.js';
import type { Channel } from '../../../domain/transcript.js';
import { YOUTUBE_ORIGIN } from '../egress/http-transport.js';
import {
  asArray,
  asString,
  at,
  isObject,
  textOf,
  hasErrorAlert,
  IncompletePageError,
  receivedActions,
  UnreadableError,
} from '../response-parsing.js';

export type ChannelPage =
  | { kind: 'channel'; channel: Channel }
  /** The page contains at most the name; the uploads playlist is readable. */
  | { kind: 'age-gated'; name: string | null }
  /** A hub or topic of the platform (Gaming, Sports, a game): it has a name, no handle and usually no uploads. */
  | { kind: 'topic'; name: string }
  /** Another channel replaced it, which is named by its ID or its URL; the page contains nothing else. */
  | { kind: 'moved'; to: ChannelReference }
  /** Terminated, or it never existed. */
  | { kind: 'terminated' };

// "This channel was removed because it violated our Community Guidelines." (seen), "This channel does not exist.",
// "This account has been terminated …", "This channel is not available." An alert such as "Something went wrong" is not one of them.
const REMOVED =
  /does(?:n't| not) exist|terminated|removed|suspended|deleted|closed|not available|isn't available|unavailable/;

/**
 * Reads the response to `browse` of a channel ID.
 *
 * @throws UnreadableError, for a page without a channel `IncompletePageError`
 */
export function readChannelPage(page: unknown): ChannelPage {
  const metadata = at(page, 'metadata', 'channelMetadataRenderer');
  if (metadata !== undefined) return { kind: 'channel', channel: readChannel(metadata) };
  const to = newChannel(page);
  if (to !== undefined) return { kind: 'moved', to };
  if (hasErrorAlert(page, REMOVED)) return { kind: 'terminated' };
  const gate = ageGate(page);
  if (gate !== undefined) return { kind: 'age-gated', name: asString(at(gate, 'channelTitle')) };
  const name = topicName(page);
  if (name === null) throw new IncompletePageError('a channel, a topic channel, an age gate or an alert');
  return { kind: 'topic', name };
}

function readChannel(metadata: unknown): Channel {
  const id = asString(at(metadata, 'externalId'));
  const name = asString(at(metadata, 'title'));
  if (id === null || !CHANNEL_ID.test(id)) throw new UnreadableError('the ID of a channel');
  if (name === null) throw new UnreadableError('the name of a channel');
  const urls = [at(metadata, 'vanityChannelUrl'), ...asArray(at(metadata, 'ownerUrls'))];
  return { id, name, handle: urls.map(readHandle).find((handle) => handle !== null) ?? null };
}

/** The handle in `http://www.youtube.com/@name`, percent-decoded and NFC-normalized; null for a URL without one. */
function readHandle(url: unknown): string | null {
  const [, handle] = /^https?:\/\/(?:www\.)?youtube\.com\/(@[^/?#]{1,300})$/.exec(asString(url) ?? '') ?? [];
  if (handle === undefined) return null;
  try {
    return decodeURIComponent(handle).normalize('NFC');
  } catch {
    return null;
  }
}

/**
 * The platform's hubs and topic channels have no metadata: only their header contains their name, in a carousel (Sports,
 * recorded in January 2026), in the page header (Gaming, News, …, reported in August 2026) or above tabs.
 */
function topicName(page: unknown): string | null {
  const header = at(page, 'header');
  const pageHeader = at(header, 'pageHeaderRenderer');
  const names = [
    ...asArray(at(header, 'carouselHeaderRenderer', 'contents')).map((item) =>
      textOf(at(item, 'topicChannelDetailsRenderer', 'title')),
    ),
    textOf(at(header, 'interactiveTabbedHeaderRenderer', 'title')),
    asString(at(pageHeader, 'pageTitle')),
    textOf(at(pageHeader, 'content', 'pageHeaderViewModel', 'title', 'dynamicTextViewModel', 'text')),
  ];
  return names.find((name) => name !== null) ?? null;
}

/** The target of a `navigateAction`, in the forms that maintained clients read: an ID, or only a URL. */
function newChannel(page: unknown): ChannelReference | undefined {
  return receivedActions(page)
    .map((action) => at(action, 'navigateAction', 'endpoint'))
    .flatMap((endpoint) => {
      const id = asString(at(endpoint, 'browseEndpoint', 'browseId'));
      if (id !== null && CHANNEL_ID.test(id)) return [{ kind: 'id', id } as const];
      const urls = [
        at(endpoint, 'urlEndpoint', 'url'),
        at(endpoint, 'commandMetadata', 'webCommandMetadata', 'url'),
        at(endpoint, 'browseEndpoint', 'canonicalBaseUrl'),
      ];
      return urls.flatMap((url) => channelOf(asString(url)) ?? []);
    })
    .at(0);
}

/** The channel of an absolute or relative URL of the platform. It is parsed like a caller's text, and never fetched. */
function channelOf(url: string | null): ChannelReference | null {
  const resolved = url === null ? undefined : parseUrl(url, YOUTUBE_ORIGIN);
  return (resolved && parseChannelReference(resolved.href)) ?? null;
}

function ageGate(page: unknown): unknown {
  return asArray(at(page, 'contents', 'twoColumnBrowseResultsRenderer', 'tabs'))
    .flatMap((tab) => asArray(at(tab, 'tabRenderer', 'content', 'sectionListRenderer', 'contents')))
    .map((section) => at(section, 'channelAgeGateRenderer'))
    .find(isObject);
}

/**
 * The channel in a response (HTTP 200) of `resolve_url`: its ID, or the name that the URL redirects to. Null when the URL
 * is not a channel's, such as a video's or the platform's own page.
 *
 * @throws IncompletePageError
 */
export function readResolvedUrl(page: unknown): ChannelReference | null {
  const endpoint = at(page, 'endpoint');
  if (!isObject(endpoint) || Object.keys(endpoint).length === 0) throw new IncompletePageError('an endpoint');
  const id = asString(at(endpoint, 'browseEndpoint', 'browseId'));
  if (id !== null) return CHANNEL_ID.test(id) ? { kind: 'id', id } : null;
  return channelOf(asString(at(endpoint, 'urlEndpoint', 'url')));
}

/**
 * The handle of a channel in any link to it on a page; null without one. Only a link to this channel counts, because a
 * collaboration names other channels too. Never throws.
 */
export function findHandle(page: unknown, channelId: string): string | null {
  const unread = [page];
  for (let value = unread.pop(); value !== undefined; value = unread.pop()) {
    const endpoint = at(value, 'browseEndpoint');
    if (at(endpoint, 'browseId') === channelId) {
      const handle = readHandle(`${YOUTUBE_ORIGIN}${asString(at(endpoint, 'canonicalBaseUrl')) ?? ''}`);
      if (handle !== null) return handle;
    }
    for (const part of isObject(value) ? Object.values(value) : asArray(value)) unread.push(part);
  }
  return null;
}
