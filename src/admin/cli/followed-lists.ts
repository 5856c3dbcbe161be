import { readFile } from 'node:fs/promises';
import { decodeXML } from 'entities';
import { parseChannelReference } from '../../domain/references/channel-reference.js';
import { parsePlaylistReference } from '../../domain/references/playlist-reference.js';
import { parsePageUrl } from '../../domain/references/page-url.js';

/** How many lines with faults an error names. */
const FAULTS_SHOWN_MAX = 5;

interface Entry {
  line: number;
  /** Undefined when the line names no channel or playlist. */
  reference: string | undefined;
}

/**
 * Reads the channels and playlists of a file: one a line, with comments after `#`, or the OPML that feed readers export, whose feeds of
 * other sites are not taken.
 *
 * @throws Error that names the lines without one
 */
export async function readFollowedLists(path: string): Promise<string[]> {
  const text = (await readFile(path, 'utf8')).replace(/^\ufeff/, '');
  const listed = /^\s*<(?:\?xml|!--|opml)/i.test(text) ? outlinesOf(text) : linesOf(text);
  const faults = listed.filter(({ reference }) => reference === undefined).map(({ line }) => line);
  const shown = faults.slice(0, FAULTS_SHOWN_MAX).join(', ') + (faults.length > FAULTS_SHOWN_MAX ? ', …' : '');
  if (faults.length > 0)
    throw new Error(`${path} has no channel or playlist in line ${shown}. Use a handle, an ID or a URL.`);
  if (listed.length === 0) throw new Error(`${path} has no channel or playlist.`);
  return listed.flatMap(({ reference }) => reference ?? []);
}

function linesOf(text: string): Entry[] {
  return text.split(/\r\n|[\n\r]/).flatMap((content, index) => {
    const text = content.replace(/(?:^|\s)#.*/, '').trim();
    return text === '' ? [] : [{ line: index + 1, reference: referenceIn(text) }];
  });
}

const COMMENT = /<!--.*?-->/gs;
/** Attributes with their values up to the end of a tag. */
const TAG_REST = /(?:[^<>"']|"[^"<]*"|'[^'<]*')*>/y;
const ATTRIBUTE = /(?<=\s)([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

function outlinesOf(text: string): Entry[] {
  const document = text.replace(COMMENT, (comment) => comment.replace(/[^\n]/g, ' '));
  return [...document.matchAll(/<outline\b/g)].flatMap(({ index, 0: start }) => {
    const line = document.slice(0, index).split('\n').length;
    TAG_REST.lastIndex = index + start.length;
    const rest = TAG_REST.exec(document)?.[0];
    if (rest === undefined) return [{ line, reference: undefined }];
    const attributes = new Map([...rest.matchAll(ATTRIBUTE)].map(([, name, ...values]) => [name, values.join('')]));
    const address = decodeXML(attributes.get('xmlUrl') ?? '');
    return parsePageUrl(address) ? [{ line, reference: referenceOf(address) }] : [];
  });
}

/** What the address of a feed, or of a page, is of. */
function referenceOf(address: string): string | undefined {
  const { segments = [], parameters } = parsePageUrl(address) ?? {};
  if (segments.join('/') !== 'feeds/videos.xml') return referenceIn(address);
  const [playlist, id] = [parameters?.get('playlist_id'), parameters?.get('channel_id')];
  const page = id ? `channel/${id}` : `user/${parameters?.get('user') ?? ''}`;
  return referenceIn(playlist ?? `https://www.youtube.com/${page}`);
}

/** A text that names a channel or a playlist. */
function referenceIn(text: string): string | undefined {
  return (parsePlaylistReference(text) ?? parseChannelReference(text)) && text;
}
