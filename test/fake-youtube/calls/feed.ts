import { type FakeResponse, htmlNotFound, textResponse } from '../rendered-bodies.js';
import { escapeXml } from './caption-formats.js';
import type { Channel, Video } from '../catalogue/model.js';
import type { Incoming } from '../incoming-request.js';
import type { ServerState } from '../settings.js';

const ENTRIES_MAX = 15;
const NOT_IN_FEED: readonly string[] = ['private', 'deleted', 'members-only'];

/** `GET /feeds/videos.xml?channel_id=…`: the newest 15 public uploads with their exact dates. */
export function feed(incoming: Incoming, { catalogue }: ServerState): FakeResponse {
  const channel = catalogue.channelById(incoming.url.searchParams.get('channel_id') ?? '');
  if (!channel || channel.state === 'terminated') return htmlNotFound();
  return textResponse(
    200,
    'text/xml; charset=UTF-8',
    () => atom(channel),
    `feed:${channel.id}:${catalogue.revision(channel.id)}`,
  );
}

function atom(channel: Channel): string {
  const videos = channel.uploads().filter((video) => !NOT_IN_FEED.includes(video.state));
  return `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns:media="http://search.yahoo.com/mrss/" xmlns="http://www.w3.org/2005/Atom">
 <id>yt:channel:${channel.id.slice(2)}</id>
 <yt:channelId>${channel.id.slice(2)}</yt:channelId>
 <title>${escapeXml(channel.name)}</title>
 <link rel="alternate" href="https://www.youtube.com/channel/${channel.id}"/>
 <published>2012-04-01T08:00:00+00:00</published>
${videos
  .slice(0, ENTRIES_MAX)
  .map((video) => entry(channel, video))
  .join('')}</feed>
`;
}

function entry(channel: Channel, video: Video): string {
  return ` <entry>
  <id>yt:video:${video.id}</id>
  <yt:videoId>${video.id}</yt:videoId>
  <yt:channelId>${channel.id}</yt:channelId>
  <title>${escapeXml(video.title)}</title>
  <link rel="alternate" href="https://www.youtube.com/${video.short ? 'shorts/' : 'watch?v='}${video.id}"/>
  <author><name>${escapeXml(channel.name)}</name><uri>https://www.youtube.com/channel/${channel.id}</uri></author>
  <published>${video.publishedAt.toISOString().replace('.000Z', '+00:00')}</published>
  <updated>${video.publishedAt.toISOString().replace('.000Z', '+00:00')}</updated>
  <media:group>
   <media:title>${escapeXml(video.title)}</media:title>
   <media:thumbnail url="https://i.ytimg.com/vi/${video.id}/hqdefault.jpg" width="480" height="360"/>
   <media:community><media:statistics views="${video.viewCount}"/></media:community>
  </media:group>
 </entry>
`;
}
