import { asVideoId, UnreadableError } from '../response-parsing.js';
import { readInstant } from './displayed-values.js';

const VIDEO_ID = /<yt:videoId>([^<]*)<\/yt:videoId>/;
const PUBLISHED = /<published>([^<]*)<\/published>/;

/**
 * Reads a channel's Atom feed: the publish date of each of its videos (the newest 15) as video ID -> ISO 8601 in UTC.
 * An entry without a readable ID or time is skipped.
 *
 * @throws UnreadableError for a body that is not a feed or is truncated
 */
export function readFeedDates(xml: string): Map<string, string> {
  const body = xml.trim();
  if (!/^(?:<\?xml [^<>]*\?>\s*)?<feed[\s>]/.test(body) || !body.endsWith('</feed>'))
    throw new UnreadableError('a whole feed');
  const dates = new Map<string, string>();
  for (const opened of body.split('<entry>').slice(1)) {
    const [entry = ''] = opened.split('</entry>', 1);
    const videoId = asVideoId(VIDEO_ID.exec(entry)?.[1]?.trim());
    const published = readInstant(PUBLISHED.exec(entry)?.[1]?.trim() ?? '');
    if (videoId !== null && published !== null) dates.set(videoId, published);
  }
  return dates;
}
