import { readHandle } from './channel-page.js';
import { asArray, asCount, asString, at } from '../response-parsing.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { listItems } from './uploads-page.js';

/** The owner of a playlist; both are null when the page does not name it. */
interface PlaylistOwner {
  name: string | null;
  handle: string | null;
}

interface Link {
  /** Evaluated for the owner's link only: slicing the text of every link out of a long line would be quadratic. */
  text: () => string | null;
  endpoint: unknown;
}

/**
 * Reads the owner of the listed uploads from the page's header, or from the byline of each video. Only a link to this
 * channel counts, because a collaboration names other channels too. Never throws.
 */
export function readPlaylistOwner(page: unknown, channelId: string): PlaylistOwner {
  const links = [
    ...linksInRuns(at(page, 'header', 'playlistHeaderRenderer', 'ownerText')),
    ...listItems(page).flatMap((item) => [
      ...linksInRuns(at(item, 'playlistVideoRenderer', 'shortBylineText')),
      ...linksInLockup(at(item, 'lockupViewModel')),
    ]),
  ];
  const owner = links.find(({ endpoint }) => at(endpoint, 'browseEndpoint', 'browseId') === channelId);
  const path = asString(at(owner?.endpoint, 'browseEndpoint', 'canonicalBaseUrl'));
  return { name: owner?.text() ?? null, handle: path === null ? null : readHandle(YOUTUBE_ORIGIN + path) };
}

/** Seen until May 2026. */
function linksInRuns(text: unknown): Link[] {
  return asArray(at(text, 'runs')).map((run) => ({
    text: () => asString(at(run, 'text')),
    endpoint: at(run, 'navigationEndpoint'),
  }));
}

/** The form of links in the newer entries, according to the source of maintained clients. */
function linksInLockup(lockup: unknown): Link[] {
  const metadata = at(lockup, 'metadata', 'lockupMetadataViewModel', 'metadata', 'contentMetadataViewModel');
  const parts = asArray(at(metadata, 'metadataRows')).flatMap((row) => asArray(at(row, 'metadataParts')));
  return parts.flatMap((part) => {
    const content = asString(at(part, 'text', 'content')) ?? '';
    return asArray(at(part, 'text', 'commandRuns')).map((run) => {
      const start = asCount(at(run, 'startIndex')) ?? 0;
      const length = asCount(at(run, 'length')) ?? content.length;
      return {
        text: () => asString(content.slice(start, start + length)),
        endpoint: at(run, 'onTap', 'innertubeCommand'),
      };
    });
  });
}
