import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { unlistedVideo, type Upload, type VideoKind } from '../../../domain/transcript.js';
import type { UploadsListPage } from '../../video-platform.js';
import { UnreadableError } from '../response-parsing.js';
import { type FeedEntry, readFeed, withAdditions } from './list-additions.js';

const upload = (videoId: string, kind: VideoKind | null = null): Upload => ({ ...unlistedVideo(videoId), kind });

/** A page whose list goes on, unless it is the whole of it. */
const pageOf = (uploads: Upload[], end: 'goes-on' | 'whole' | 'early' = 'goes-on'): UploadsListPage => ({
  ...{ uploads, next: end === 'goes-on' ? 'next' : null, incomplete: end === 'early', hidden: null, pages: 1 },
});
const shortsOf = (ids: readonly string[], end: 'goes-on' | 'whole' | 'early') =>
  pageOf(
    ids.map((id) => upload(id, 'short')),
    end,
  );
const kinds = (page: UploadsListPage, shorts: UploadsListPage | null, feed: Map<string, FeedEntry> | null = null) =>
  withAdditions(page, { shorts, feed }).uploads.map(({ kind }) => kind);

describe('the kinds of a first page', () => {
  const page = pageOf(['a', 'b', 'c', 'd'].map((id) => upload(id)));

  it.each<[string, UploadsListPage, (string | null)[]]>([
    ['as far as the list of Shorts reaches', shortsOf(['b'], 'goes-on'), ['video', 'short', null, null]],
    ['to the end of a complete list', shortsOf(['b'], 'whole'), ['video', 'short', 'video', 'video']],
    ['not to an end that is too early', shortsOf(['b'], 'early'), ['video', 'short', null, null]],
    ['beyond the uploads', shortsOf(['b', 'older'], 'goes-on'), ['video', 'short', 'video', 'video']],
    ['of a channel without Shorts', shortsOf([], 'whole'), Array(4).fill('video')],
    ['not without a list of Shorts', shortsOf([], 'early'), Array(4).fill(null)],
  ])('are told %s', (_, shorts, expected) => {
    expect(kinds(page, shorts)).toEqual(expected);
  });

  it('are those of the list where it states them, and of the Shorts that the feed links', () => {
    const stated = pageOf([upload('a', 'live'), upload('b', 'upcoming'), upload('c', 'video'), upload('d')]);
    expect(kinds(stated, shortsOf(['a', 'b'], 'whole'))).toEqual(['live', 'upcoming', 'video', 'video']);
    const linked = new Map([['d', { publishedAt: null, isShort: true }]]);
    expect(kinds(stated, null, linked)).toEqual(['live', 'upcoming', 'video', 'short']);
    expect(kinds(stated, null)).toEqual(['live', 'upcoming', 'video', null]);
  });

  it('never call a Short a video, and call nothing else a Short', () => {
    const channel = fc.array(fc.boolean(), { maxLength: 60 });
    fc.assert(
      fc.property(
        channel,
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 60 }),
        (all, size, shortsSize) => {
          const ids = all.map((_, index) => `v${index}`);
          const shorts = ids.filter((_, index) => all[index]);
          const listed = pageOf(ids.slice(0, size).map((id) => upload(id)));
          const read = shortsOf(shorts.slice(0, shortsSize), shorts.length > shortsSize ? 'goes-on' : 'whole');
          kinds(listed, read).forEach((kind, index) => {
            expect(kind).not.toBe(all[index] === true ? 'video' : 'short');
          });
        },
      ),
    );
  });
});

const entry = (videoId: string, published: string) => `
 <entry>
  <id>yt:video:${videoId}</id>
  <yt:videoId>${videoId}</yt:videoId>
  <title>Tags &lt;b&gt; &amp; such</title>
  <link rel="alternate" href="https://www.youtube.com/watch?v=${videoId}"/>
  <published>${published}</published>
  <updated>2026-06-01T00:00:00+00:00</updated>
  <media:group><media:title>x</media:title></media:group>
 </entry>`;
const feed = (entries: string) => `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns="http://www.w3.org/2005/Atom">
 <yt:channelId>abcdefghijklmnopqrstuv</yt:channelId>
 <published>2011-01-01T00:00:00+00:00</published>${entries}
</feed>
`;

describe('the feed', () => {
  it('returns the date of each video in UTC', () => {
    const xml = feed(
      entry('aaaaaaaaaaa', '2026-05-21T11:22:05+00:00') + entry('bbbbbbbbb-_', '2015-01-27T21:14:36-08:00'),
    );
    expect(readFeed(xml)).toEqual(
      new Map([
        ['aaaaaaaaaaa', { publishedAt: '2026-05-21T11:22:05Z', isShort: false }],
        ['bbbbbbbbb-_', { publishedAt: '2015-01-28T05:14:36Z', isShort: false }],
      ]),
    );
  });

  it('tells the Shorts that it links as such', () => {
    const xml = feed(
      entry('aaaaaaaaaaa', '2026-05-21T11:22:05Z').replace('/watch?v=', '/shorts/') +
        entry('bbbbbbbbbbb', '2026-05-21T11:22:05Z').replace('Tags', 'https://www.youtube.com/shorts/x'),
    );
    expect([...readFeed(xml).values()].map(({ isShort }) => isShort)).toEqual([true, false]);
  });

  it('skips an entry without a readable ID, and a time that is not exact', () => {
    const xml = feed(
      entry('short', '2026-05-21T11:22:05+00:00') +
        entry('aaaaaaaaaaa', 'today') +
        '<entry/>' +
        entry('ccccccccccc', '2026-05-21T11:22:05Z'),
    );
    expect([...readFeed(xml)].map(([id, { publishedAt }]) => [id, publishedAt])).toEqual([
      ['aaaaaaaaaaa', null],
      ['ccccccccccc', '2026-05-21T11:22:05Z'],
    ]);
    expect(readFeed(feed('')).size).toBe(0);
  });

  it.each(['', 'Not found', '<html><head></head></html>', '<feed/>', '{}', '<rss><feed></feed></rss>'])(
    'refuses %j',
    (body) => {
      expect(() => readFeed(body)).toThrow(UnreadableError);
    },
  );

  it('rejects a feed that is truncated anywhere', () => {
    const xml = feed(entry('aaaaaaaaaaa', '2026-05-21T11:22:05+00:00')).trimEnd();
    for (let length = 0; length < xml.length; length++)
      expect(() => readFeed(xml.slice(0, length))).toThrow(UnreadableError);
  });
});
