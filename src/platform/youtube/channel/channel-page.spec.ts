import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { mutationsOf } from '../../../../test/pages/page-mutations.js';
import {
  ageGatedPage,
  alertPage,
  CHANNEL_ID,
  channelPage,
  topicChannelPage,
} from '../../../../test/pages/youtube-pages.js';
import { readChannelPage, readResolvedUrl } from './channel-page.js';
import { UnreadableError } from '../response-parsing.js';

const handleOf = (fields: object) => {
  const page = readChannelPage(channelPage(fields));
  return page.kind === 'channel' ? page.channel.handle : undefined;
};

describe('a channel page', () => {
  it('names the channel', () => {
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

  it("finds the handle among the owner's addresses too", () => {
    expect(handleOf({ vanityChannelUrl: undefined })).toBe('@a.channel');
  });

  it.each([
    'This channel does not exist.',
    'This channel doesn’t exist.',
    'This channel was removed because it violated our Community Guidelines.',
    'This account has been terminated due to multiple or severe violations.',
    'This channel is not available.',
  ])('tells "%s" as gone', (text) => {
    expect(readChannelPage(alertPage(text))).toEqual({ kind: 'terminated' });
  });

  it('does not take a passing trouble or a notice for a channel that is gone', () => {
    expect(() => readChannelPage(alertPage('Something went wrong.'))).toThrow(UnreadableError);
    expect(() => readChannelPage(alertPage('This channel does not exist.', 'INFO'))).toThrow(UnreadableError);
  });

  it('names a topic channel, which has a carousel header and no metadata', () => {
    const channel = { id: CHANNEL_ID, name: 'Sailing', handle: null };
    expect(readChannelPage(topicChannelPage)).toEqual({ kind: 'channel', channel });
  });

  it('tells an age gate and the name on it', () => {
    expect(readChannelPage(ageGatedPage)).toEqual({ kind: 'age-gated', name: 'A whisky' });
  });

  it.each([{}, null, [], { metadata: {} }, channelPage({ externalId: 'UC' }), channelPage({ title: '' })])(
    'refuses %j',
    (page) => {
      expect(() => readChannelPage(page)).toThrow(UnreadableError);
    },
  );

  it('gives a valid reading or an UnreadableError for any page', () => {
    const pages = fc.oneof(
      fc.jsonValue(),
      mutationsOf(channelPage()),
      mutationsOf(ageGatedPage),
      mutationsOf(alertPage('This channel does not exist.')),
    );
    fc.assert(
      fc.property(pages, (page) => {
        try {
          const read = readChannelPage(page);
          if (read.kind === 'channel') expect(read.channel.id).toMatch(/^UC[\w-]{22}$/);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('a resolved address', () => {
  it('gives the ID of the channel it leads to', () => {
    expect(readResolvedUrl({ endpoint: { commandMetadata: {}, browseEndpoint: { browseId: CHANNEL_ID } } })).toBe(
      CHANNEL_ID,
    );
  });

  it.each([
    { watchEndpoint: { videoId: 'aaaaaaaaaaa' } },
    { browseEndpoint: { browseId: 'FEtrending' } },
    { urlEndpoint: { url: 'https://example.org' } },
  ])('is null when it leads to %j', (endpoint) => {
    expect(readResolvedUrl({ endpoint })).toBeNull();
  });

  it.each([{}, null, { endpoint: {} }, { endpoint: 'x' }, { error: { code: 404 } }])('refuses %j', (page) => {
    expect(() => readResolvedUrl(page)).toThrow(UnreadableError);
  });

  it('gives an ID, null or an UnreadableError for any JSON', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.jsonValue().map((endpoint) => ({ endpoint })),
        ),
        (page) => {
          try {
            expect(readResolvedUrl(page) ?? CHANNEL_ID).toMatch(/^UC[\w-]{22}$/);
          } catch (error) {
            expect(error).toBeInstanceOf(UnreadableError);
          }
        },
      ),
    );
  });
});
