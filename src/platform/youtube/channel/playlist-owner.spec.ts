import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CHANNEL_ID, lockup, oldPage, playlistPage, playlistVideo } from '../../../../test/pages/youtube-pages.js';
import { mutationsOf } from '../../../../test/pages/page-mutations.js';
import { readPlaylistOwner } from './playlist-owner.js';

const endpoint = (browseId: string, handle: string) => ({ browseEndpoint: { browseId, canonicalBaseUrl: handle } });
const byline = (...links: [text: string, browseId: string, path: string][]) => ({
  shortBylineText: { runs: links.map(([text, id, path]) => ({ text, navigationEndpoint: endpoint(id, path) })) },
});
const OTHER = `UC${'o'.repeat(22)}`;

describe('readPlaylistOwner', () => {
  it('finds the channel in the byline of a video, also among collaborators', () => {
    const page = oldPage([
      playlistVideo('aaaaaaaaaaa', byline(['A guest', OTHER, '/@guest'])),
      playlistVideo('bbbbbbbbbbb', byline(['A guest', OTHER, '/@guest'], ['The tavern', CHANNEL_ID, '/@tavern'])),
    ]);
    expect(readPlaylistOwner(page, CHANNEL_ID)).toEqual({ name: 'The tavern', handle: '@tavern' });
  });

  it('finds the channel in the newer entries', () => {
    const entry = lockup('aaaaaaaaaaa');
    const content = 'Night watch and The tavern';
    const run = (startIndex: number, length: number, id: string, path: string) => ({
      ...{ startIndex, length, onTap: { innertubeCommand: endpoint(id, path) } },
    });
    const text = { content, commandRuns: [run(0, 11, OTHER, '/@guest'), run(16, 10, CHANNEL_ID, '/@%C3%A9toile')] };
    const rows = entry.lockupViewModel.metadata.lockupMetadataViewModel.metadata.contentMetadataViewModel.metadataRows;
    Object.assign(rows[0] ?? {}, { metadataParts: [{ text }] });
    expect(readPlaylistOwner(playlistPage([entry]), CHANNEL_ID)).toEqual({ name: 'The tavern', handle: '@étoile' });
  });

  it('finds the channel in the header, with a null handle for a channel without one', () => {
    const header = {
      playlistHeaderRenderer: {
        ownerText: byline(['The tavern', CHANNEL_ID, `/channel/${CHANNEL_ID}`]).shortBylineText,
      },
    };
    expect(readPlaylistOwner(oldPage([], { header }), CHANNEL_ID)).toEqual({ name: 'The tavern', handle: null });
  });

  it('returns null values when nothing links to the channel', () => {
    expect(readPlaylistOwner(oldPage([playlistVideo('aaaaaaaaaaa')]), CHANNEL_ID)).toEqual({
      name: null,
      handle: null,
    });
  });

  it('never throws', () => {
    const page = oldPage([playlistVideo('bbbbbbbbbbb', byline(['The tavern', CHANNEL_ID, '/@tavern']))]);
    const parsed = (value: unknown) => value === null || typeof value === 'string';
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), mutationsOf(page)), (any) => {
        expect(Object.values(readPlaylistOwner(any, CHANNEL_ID)).every(parsed)).toBe(true);
      }),
    );
  });
});
