import { readInstant } from './displayed-values.js';
import { UnreadableError } from '../response-parsing.js';
import { nextTag } from '../captions/xml-tags.js';

const VIDEO_ID = /^[A-Za-z0-9_-]{11}$/;

/**
 * Reads a channel's Atom feed: the publish date of each of its videos (the newest 15) as video ID -> ISO 8601 in UTC.
 * An entry without a readable ID or time is skipped.
 *
 * @throws UnreadableError for a body that is not a feed or is truncated
 */
export function readFeedDates(xml: string): Map<string, string> {
  const dates = new Map<string, string>();
  let entry: { videoId?: string | undefined; published?: string | undefined } | undefined;
  let rooted = false;
  let ended = false;
  let position = 0;
  for (let tag = nextTag(xml, 0); tag !== null; tag = nextTag(xml, position)) {
    const text = xml.slice(position, tag.start).trim();
    position = tag.end;
    if (tag.kind === 'other') continue;
    if (!rooted && tag.name !== 'feed') break;
    rooted = true;
    if (tag.name === 'entry') {
      if (tag.kind === 'close' && entry?.videoId !== undefined && entry.published !== undefined) {
        dates.set(entry.videoId, entry.published);
      }
      entry = tag.kind === 'open' ? {} : undefined;
    }
    if (tag.kind !== 'close') continue;
    ended = tag.name === 'feed';
    if (entry && tag.name === 'yt:videoId' && VIDEO_ID.test(text)) entry.videoId = text;
    if (entry && tag.name === 'published') entry.published = readInstant(text) ?? undefined;
  }
  if (!ended) throw new UnreadableError('a whole feed');
  return dates;
}
