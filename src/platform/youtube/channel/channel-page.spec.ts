import { describe, expect, it } from '@jest/globals';
import {
  ageGatedPage,
  alertPage,
  CHANNEL_ID,
  channelPage,
  movedPage,
  redirectedUrl,
  topicChannelPage,
  oldPage,
  playlistPage,
  playlistVideo,
} from '../../../../test/pages/youtube-pages.js';
import { findHandle, readChannelPage, readResolvedUrl } from './channel-page.js';
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
    "This account has been terminated for a violation of YouTube's Terms of Service.",
    'This channel is not available.',
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

  const text = { simpleText: 'Sailing' };
  const dynamicTextViewModel = { text: { content: 'Sailing' } };
  it.each([
    ['a carousel', topicChannelPage.header],
    ['a page header', { pageHeaderRenderer: { pageTitle: 'Sailing', content: {} } }],
    ['a title', { pageHeaderRenderer: { content: { pageHeaderViewModel: { title: { dynamicTextViewModel } } } } }],
    ['tabs', { interactiveTabbedHeaderRenderer: { type: 'x', title: text } }],
  ])('reads a hub, which has a header with %s and no metadata', (_, header) => {
    expect(readChannelPage({ header })).toEqual({ kind: 'topic', name: 'Sailing' });
    expect(readChannelPage({ ...ageGatedPage, header })).toMatchObject({ kind: 'age-gated' });
    expect(readChannelPage({ ...channelPage(), header })).toMatchObject({ kind: 'channel' });
    expect(readChannelPage({ ...alertPage('This channel does not exist.'), header })).toEqual({ kind: 'terminated' });
  });

  it.each(['onResponseReceivedActions', 'onResponseReceivedEndpoints'])('reads the new channel in %s', (list) => {
    expect(readChannelPage(movedPage(CHANNEL_ID, list))).toEqual({ kind: 'moved', to: { kind: 'id', id: CHANNEL_ID } });
    expect(readChannelPage({ ...movedPage(`UC${'d'.repeat(22)}`, list), ...channelPage() })).toMatchObject({
      kind: 'channel',
    });
  });

  const target = `/channel/${CHANNEL_ID}`;
  it.each([
    ['a URL', { urlEndpoint: { url: `https://www.youtube.com${target}` } }, { kind: 'id', id: CHANNEL_ID }],
    ['a handle', { urlEndpoint: { url: 'https://www.youtube.com/@new' } }, { kind: 'handle', handle: 'new' }],
    ['a path', { commandMetadata: { webCommandMetadata: { url: target } } }, { kind: 'id', id: CHANNEL_ID }],
    ['a base URL', { browseEndpoint: { canonicalBaseUrl: '/@new' } }, { kind: 'handle', handle: 'new' }],
  ])('reads the new channel that is named by %s only', (_, endpoint, to) => {
    const page = { onResponseReceivedEndpoints: [{ navigateAction: { endpoint } }] };
    expect(readChannelPage(page)).toEqual({ kind: 'moved', to });
  });

  it.each(['https://example.org/@new', '/watch?v=aaaaaaaaaaa'])(
    'does not read a redirect to %s as a channel',
    (url) => {
      const page = { onResponseReceivedActions: [{ navigateAction: { endpoint: { urlEndpoint: { url } } } }] };
      expect(() => readChannelPage(page)).toThrow(UnreadableError);
    },
  );

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
    ...['https://www.youtube.com.example.org/@name', 'https://name@www.youtube.com/@name', 'javascript:@name', 7].map(
      (url) => ({ urlEndpoint: { url } }),
    ),
    { urlEndpoint: { url: 'https://www.youtube.com/redirect?q=https%3A%2F%2Fwww.youtube.com%2F%40name' } },
    { watchEndpoint: { videoId: 'aaaaaaaaaaa' } },
    { browseEndpoint: { browseId: 'FEtrending' } },
  ])('is null for %j', (endpoint) => {
    expect(readResolvedUrl({ endpoint })).toBeNull();
  });

  it.each([{}, null, { endpoint: {} }, { endpoint: 'x' }, { error: { code: 404 } }])('rejects %j', (page) => {
    expect(() => readResolvedUrl(page)).toThrow(UnreadableError);
  });
});

const linkTo = (browseId: string, canonicalBaseUrl: string) => ({ browseEndpoint: { browseId, canonicalBaseUrl } });
const OTHER = `UC${'o'.repeat(22)}`;

describe('the handle of an age-gated channel', () => {
  it.each([
    [
      'the byline of an entry, also among collaborators',
      oldPage([
        playlistVideo('aaaaaaaaaaa', { shortBylineText: { runs: [{ navigationEndpoint: linkTo(OTHER, '/@guest') }] } }),
        playlistVideo('bbbbbbbbbbb', {
          shortBylineText: {
            runs: [
              { navigationEndpoint: linkTo(OTHER, '/@guest') },
              { navigationEndpoint: linkTo(CHANNEL_ID, '/@tavern') },
            ],
          },
        }),
      ]),
      '@tavern',
    ],
    [
      'a newer entry',
      playlistPage([
        { lockupViewModel: { commandRuns: [{ onTap: { innertubeCommand: linkTo(CHANNEL_ID, '/@%C3%A9toile') } }] } },
      ]),
      '@étoile',
    ],
    ['a link without a handle', { ownerText: linkTo(CHANNEL_ID, `/channel/${CHANNEL_ID}`) }, null],
    ['a page that does not link to the channel', oldPage([playlistVideo('aaaaaaaaaaa')]), null],
  ])('is that in %s', (_, page, handle) => {
    expect(findHandle(page, CHANNEL_ID)).toBe(handle);
  });
});
