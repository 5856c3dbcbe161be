import { type FakeResponse, invalidArgument, jsonResponse } from '../rendered-bodies.js';
import type { Channel } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';
import type { CurrentCatalogue } from '../publish/current-catalogue.js';
import { responseContext, visitorDataOf } from './response-context.js';

const CHANNEL_ID = /^UC[A-Za-z0-9_-]{22}$/;

/** `POST /youtubei/v1/browse` of a channel ID: its metadata, or, with status 200, an alert that it is unavailable. */
export function channelPage(browseId: string, catalogue: CurrentCatalogue): FakeResponse {
  if (!CHANNEL_ID.test(browseId)) return invalidArgument();
  const channel = catalogue.channelById(browseId);
  const key = `channel:${browseId}:${catalogue.revision(browseId)}`;
  if (!channel) return jsonResponse(() => deleted(browseId, 'This channel does not exist.'), key);
  if (channel.state === 'terminated') {
    return jsonResponse(
      () => deleted(browseId, 'This account has been terminated for breaking the platform’s rules.'),
      key,
    );
  }
  if (channel.state === 'hub') return jsonResponse(() => hub(channel), key);
  return jsonResponse(() => (channel.state === 'age-gated' ? ageGate(channel) : page(channel)), key);
}

/** The path of the channel on the site, percent-encoded; by ID for the few that have no handle. */
export function channelPath(channel: Channel): string {
  return `/${encodeURI(channel.handle ?? `channel/${channel.id}`)}`;
}

function page(channel: Channel): JsonObject {
  return {
    ...context(channel.id),
    contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { title: 'Home', selected: true } }] } },
    metadata: {
      channelMetadataRenderer: {
        title: channel.name,
        description: channel.description,
        externalId: channel.id,
        ownerUrls: [`http://www.youtube.com${channelPath(channel)}`],
        vanityChannelUrl: `http://www.youtube.com${channelPath(channel)}`,
      },
    },
  };
}

function hub(channel: Channel): JsonObject {
  const title = { dynamicTextViewModel: { text: { content: channel.name } } };
  return {
    ...context(channel.id),
    contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { selected: true } }] } },
    header: { pageHeaderRenderer: { pageTitle: channel.name, content: { pageHeaderViewModel: { title } } } },
  };
}

function ageGate(channel: Channel): JsonObject {
  const ageGate = {
    channelTitle: channel.name,
    mainText: { runs: [{ text: 'Confirm your age by signing in to see what is on this channel.' }] },
  };
  const content = { sectionListRenderer: { contents: [{ channelAgeGateRenderer: ageGate }] } };
  return {
    ...context(channel.id),
    contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { selected: true, content } }] } },
  };
}

function deleted(channelId: string, text: string): JsonObject {
  return {
    ...context(channelId),
    header: { c4TabbedHeaderRenderer: { channelId } },
    alerts: [{ alertRenderer: { type: 'ERROR', text: { simpleText: text } } }],
  };
}

function context(channelId: string): JsonObject {
  return { responseContext: responseContext('WEB', visitorDataOf('WEB', channelId)) };
}
