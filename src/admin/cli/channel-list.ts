import { readFile } from 'node:fs/promises';
import { decodeXML } from 'entities';
import { parseChannelReference } from '../../domain/references/channel-reference.js';
import { parsePageUrl } from '../../domain/references/page-url.js';

/** How many lines with faults an error names. */
const FAULTS_SHOWN_MAX = 5;

interface ListedChannel {
  line: number;
  /** Undefined when the line names none. */
  channel: string | undefined;
}

/**
 * Reads the channels of a file: one a line, with comments after `#`, or the OPML that feed readers export, whose feeds of other sites
 * are not taken.
 *
 * @throws Error that names the lines without a channel
 */
export async function readChannelList(path: string): Promise<string[]> {
  const text = (await readFile(path, 'utf8')).replace(/^\ufeff/, '');
  const listed = /^\s*<(?:\?xml|!--|opml)/i.test(text) ? outlinesOf(text) : linesOf(text);
  const faults = listed.filter(({ channel }) => channel === undefined).map(({ line }) => line);
  const shown = faults.slice(0, FAULTS_SHOWN_MAX).join(', ') + (faults.length > FAULTS_SHOWN_MAX ? ', …' : '');
  if (faults.length > 0) throw new Error(`${path} has no channel in line ${shown}. Use a handle, an ID or a URL.`);
  if (listed.length === 0) throw new Error(`${path} has no channel.`);
  return listed.flatMap(({ channel }) => channel ?? []);
}

function linesOf(text: string): ListedChannel[] {
  return text.split(/\r\n|[\n\r]/).flatMap((content, index) => {
    const channel = content.replace(/(?:^|\s)#.*/, '').trim();
    if (channel === '') return [];
    return [{ line: index + 1, channel: parseChannelReference(channel) && channel }];
  });
}

const COMMENT = /<!--.*?-->/gs;
/** Attributes with their values up to the end of a tag. */
const TAG_REST = /(?:[^<>"']|"[^"<]*"|'[^'<]*')*>/y;
const ATTRIBUTE = /(?<=\s)([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

function outlinesOf(text: string): ListedChannel[] {
  const document = text.replace(COMMENT, (comment) => comment.replace(/[^\n]/g, ' '));
  return [...document.matchAll(/<outline\b/g)].flatMap(({ index, 0: start }) => {
    const line = document.slice(0, index).split('\n').length;
    TAG_REST.lastIndex = index + start.length;
    const rest = TAG_REST.exec(document)?.[0];
    if (rest === undefined) return [{ line, channel: undefined }];
    const attributes = new Map([...rest.matchAll(ATTRIBUTE)].map(([, name, ...values]) => [name, values.join('')]));
    const address = decodeXML(attributes.get('xmlUrl') ?? '');
    return parsePageUrl(address) ? [{ line, channel: channelOf(address) }] : [];
  });
}

/** The channel of the address of a feed, or of a page. */
function channelOf(address: string): string | undefined {
  const { segments = [], parameters } = parsePageUrl(address) ?? {};
  const [id, user] = [parameters?.get('channel_id'), parameters?.get('user')];
  const isFeed = segments.join('/') === 'feeds/videos.xml';
  const page = isFeed ? `https://www.youtube.com/${id ? `channel/${id}` : `user/${user ?? ''}`}` : address;
  return parseChannelReference(page) && page;
}
