import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { temporaryFolder } from '../../../test/process/program.js';
import { readFollowedLists } from './followed-lists.js';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const ID = 'UC1234567890123456789012';
const PLAYLIST = 'PLharbourlight-boats';
const FEED = 'https://www.youtube.com/feeds/videos.xml';

/** The channels of a file with this text. */
function read(text: string): Promise<string[]> {
  const path = join(folder.path, 'list');
  writeFileSync(path, text);
  return readFollowedLists(path);
}

describe('a list of what is followed', () => {
  it('has one channel or playlist a line, with comments and empty lines', async () => {
    const text = `\ufeff# Mine\r\n@tidewater  # soup\r\n\r\n${ID}\nhttps://www.youtube.com/c/name\n${PLAYLIST}`;
    expect(await read(text)).toEqual(['@tidewater', ID, 'https://www.youtube.com/c/name', PLAYLIST]);
  });

  it('names the lines that have none, some of many', async () => {
    await expect(read('@tidewater\n\nhttps://example.com/feed\n@a b')).rejects.toThrow(
      /list has no channel or playlist in line 3, 4\. Use a handle, an ID or a URL\.$/,
    );
    await expect(read('?\n'.repeat(9))).rejects.toThrow('in line 1, 2, 3, 4, 5, ….');
    await expect(read(`${'x'.repeat(100_000)} #`)).rejects.toThrow('in line 1.');
    await expect(read('# nothing\n')).rejects.toThrow('list has no channel or playlist.');
  });
});

describe('a list in OPML', () => {
  it('has the feeds of YouTube, as YouTube and feed readers write them', async () => {
    const text = `<?xml version="1.0"?>
      <opml version="1.1"><head><title>All</title></head><body><outline text="Folder > &quot;a&quot;" title='Folder'>
        <outline text="A xmlUrl=&quot;x&quot;" xmlUrl="${FEED}?channel_id=${ID}" type="rss"/>
        <!-- <outline xmlUrl="${FEED}?channel_id=UCold" /> -->
        <outline
          xmlUrl='${FEED}?a=b&amp;user=harbour'></outline>
        <outline xmlUrl = "https://www.youtube.com/@tidewater"/>
        <outline xmlUrl="${FEED}?playlist_id=${PLAYLIST}"/>
        <outline xmlUrl="https://www.youtube.com/playlist?list=${PLAYLIST}"/>
        <outline xmlUrl="https://example.com/feed.xml" htmlUrl="https://www.youtube.com/@other"/>
      </outline></body></opml>`;
    expect(await read(text)).toEqual([
      `https://www.youtube.com/channel/${ID}`,
      'https://www.youtube.com/user/harbour',
      'https://www.youtube.com/@tidewater',
      PLAYLIST,
      `https://www.youtube.com/playlist?list=${PLAYLIST}`,
    ]);
  });

  it('names the lines with feeds of YouTube that are of no channel or playlist, and with broken tags', async () => {
    const text = `<opml>
      <outline xmlUrl="${FEED}?channel_id=UC1"/>
      <!-- two
      lines --><outline xmlUrl="${FEED}?channel_id=UCshort"/>
      <outline xmlUrl="${FEED}?channel_id=${ID}"/>
      <outline xmlUrl="${FEED}?channel_id=${ID}
    </opml>`;
    await expect(read(text)).rejects.toThrow('in line 2, 4, 6.');
    await expect(read('<opml></opml>')).rejects.toThrow('list has no channel or playlist.');
    await expect(read(`<opml>${'<outline '.repeat(20_000)}`)).rejects.toThrow('in line 1, 1, 1, 1, 1, ….');
  });
});
