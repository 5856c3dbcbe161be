import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText, anyUrl, anyPathAndQuery } from '../../../../test/any-text.js';
import { mutationsOf } from '../../../../test/pages/page-mutations.js';
import {
  ageGatedPage,
  alertPage,
  CHANNEL_ID,
  channelPage,
  movedPage,
  redirectedUrl,
  topicChannelPage,
  lockup,
  oldPage,
  playlistPage,
  playlistVideo,
} from '../../../../test/pages/youtube-pages.js';
import { parseChannelReference } from '../../../domain/channel-reference.js';
import { readChannelPage, readResolvedUrl, readPlaylistOwner } from './channel-page.js';
import { addressOf } from './channels.js';
import { UnreadableError } from '../response-parsing.js';

const handleOf = (fields: object) => {
  const page = readChannelPage(channelPage(fields));
  return page.kind === 'channel' ? page.channel.handle : undefined;
};

describe('a channel page', () => {
  it('reads the channel', () => {
    const channel = { id: CHANNEL_ID, name: 'A channel', handle: '@a.channel' };
    expect(readChannelPage(channelPage())).toEqual({ kind: 'channel', channel });
  });

  it.each([
    ['http://www.youtube.com/@%D8%A7%D9%84', '@ال'],
    ['https://www.youtube.com/@cafe%CC%81', '@café'],
    ['http://www.youtube.com/@東京', '@東京'],
    ['http://www.youtube.com/@%zz', null],
    ['http://www.youtube.com/c/Name', null],
    ['http://www.youtube.com/channel/UC', null],
    ['http://example.org/@name', null],
    [undefined, null],
    [7, null],
  ])('reads the handle in %j', (vanityChannelUrl, handle) => {
    expect(handleOf({ vanityChannelUrl, ownerUrls: [] })).toBe(handle);
  });

  it("finds the handle among the owner's URLs", () => {
    expect(handleOf({ vanityChannelUrl: undefined })).toBe('@a.channel');
  });

  it.each([
    'This channel does not exist.',
    'This channel doesn’t exist.',
    'This channel was removed because it violated our Community Guidelines.',
    'This account has been terminated due to multiple or severe violations.',
    'This channel is not available.',
    "This account has been terminated for a violation of YouTube's Terms of Service.",
    'This account has been terminated because we received multiple third-party claims of copyright infringement.',
  ])('reads "%s" as terminated', (text) => {
    expect(readChannelPage(alertPage(text))).toEqual({ kind: 'terminated' });
  });

  it.each([
    'Something went wrong.',
    'YouTube is temporarily unavailable.',
    'This channel is not available. Please try again later.',
  ])('does not read "%s" as terminated', (text) => {
    expect(() => readChannelPage(alertPage(text))).toThrow(UnreadableError);
  });

  it('does not report a notice as a terminated channel', () => {
    expect(() => readChannelPage(alertPage('This channel does not exist.', 'INFO'))).toThrow(UnreadableError);
  });

  it('reads a topic channel, which has a carousel header and no metadata', () => {
    const channel = { id: CHANNEL_ID, name: 'Sailing', handle: null };
    expect(readChannelPage(topicChannelPage)).toEqual({ kind: 'channel', channel });
  });

  it.each(['onResponseReceivedActions', 'onResponseReceivedEndpoints'])('reads the new channel in %s', (list) => {
    expect(readChannelPage(movedPage(CHANNEL_ID, list))).toEqual({ kind: 'moved', channelId: CHANNEL_ID });
    expect(readChannelPage({ ...movedPage(`UC${'d'.repeat(22)}`, list), ...channelPage() })).toMatchObject({
      kind: 'channel',
    });
  });

  it.each(['FEtrending', 'UC', `VLUU${'c'.repeat(22)}`, ''])('does not read a redirect to %j as a channel', (id) => {
    expect(() => readChannelPage(movedPage(id))).toThrow(UnreadableError);
  });

  it('reads an age gate and the name on it', () => {
    expect(readChannelPage(ageGatedPage)).toEqual({ kind: 'age-gated', name: 'A whisky' });
  });

  it.each([{}, null, [], { metadata: {} }, channelPage({ externalId: 'UC' }), channelPage({ title: '' })])(
    'refuses %j',
    (page) => {
      expect(() => readChannelPage(page)).toThrow(UnreadableError);
    },
  );

  it('returns a valid page or an UnreadableError for any page', () => {
    const pages = fc.oneof(
      fc.jsonValue(),
      mutationsOf(channelPage()),
      mutationsOf(ageGatedPage),
      mutationsOf(movedPage(CHANNEL_ID)),
      mutationsOf(alertPage('This channel does not exist.')),
    );
    fc.assert(
      fc.property(pages, (page) => {
        try {
          const read = readChannelPage(page);
          if (read.kind === 'channel') expect(read.channel.id).toMatch(/^UC[\w-]{22}$/);
          if (read.kind === 'moved') expect(read.channelId).toMatch(/^UC[\w-]{22}$/);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('a resolved URL', () => {
  it('returns the ID of the channel', () => {
    expect(readResolvedUrl({ endpoint: { commandMetadata: {}, browseEndpoint: { browseId: CHANNEL_ID } } })).toEqual({
      kind: 'id',
      id: CHANNEL_ID,
    });
  });

  it.each([
    ['https://www.youtube.com/@new.name', { kind: 'handle', handle: 'new.name' }],
    ['http://m.youtube.com/@caf%C3%A9/videos?x=y#z', { kind: 'handle', handle: 'café' }],
    [`https://www.youtube.com/channel/${CHANNEL_ID}`, { kind: 'id', id: CHANNEL_ID }],
    ['/c/Name', { kind: 'custom', name: 'Name' }],
    ['//www.youtube.com/user/name', { kind: 'user', name: 'name' }],
  ])('returns the channel that the URL redirects to, %s', (url, reference) => {
    expect(readResolvedUrl(redirectedUrl(url))).toEqual(reference);
  });

  it.each([
    'https://example.org/@name',
    'https://www.youtube.com.example.org/@name',
    'https://name@www.youtube.com/@name',
    'https://www.youtube.com:8443/@name',
    'https://www.youtube.com/redirect?q=https%3A%2F%2Fwww.youtube.com%2F%40name',
    'https://www.youtube.com/watch?v=aaaaaaaaaaa',
    'javascript:@name',
    'http://',
    '',
    7,
  ])('returns null for a redirect to %j', (url) => {
    expect(readResolvedUrl(redirectedUrl(url))).toBeNull();
  });

  it.each([
    { watchEndpoint: { videoId: 'aaaaaaaaaaa' } },
    { browseEndpoint: { browseId: 'FEtrending' } },
    { urlEndpoint: { url: 'https://example.org' } },
  ])('is null for %j', (endpoint) => {
    expect(readResolvedUrl({ endpoint })).toBeNull();
  });

  it.each([{}, null, { endpoint: {} }, { endpoint: 'x' }, { error: { code: 404 } }])('rejects %j', (page) => {
    expect(() => readResolvedUrl(page)).toThrow(UnreadableError);
  });

  it('returns a reference that the grammar accepts, null or an UnreadableError for any JSON', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.jsonValue().map((endpoint) => ({ endpoint })),
          fc.oneof(anyUrl(), anyText()).map(redirectedUrl),
          anyPathAndQuery().map((path) => redirectedUrl(`https://www.youtube.com${path}`)),
        ),
        (page) => {
          try {
            const reference = readResolvedUrl(page) ?? { kind: 'id', id: CHANNEL_ID };
            const url = reference.kind === 'id' ? reference.id : addressOf(reference);
            expect(parseChannelReference(url)).toEqual(reference);
          } catch (error) {
            expect(error).toBeInstanceOf(UnreadableError);
          }
        },
      ),
    );
  });
});

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
