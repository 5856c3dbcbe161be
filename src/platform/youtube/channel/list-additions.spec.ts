import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Upload, VideoKind } from '../../../domain/transcript.js';
import { readFeedDates, withKinds } from './list-additions.js';
import { UnreadableError } from '../response-parsing.js';

function upload(videoId: string, kind: VideoKind | null = null): Upload {
  return {
    videoId,
    kind,
    title: null,
    url: '',
    publishedAt: null,
    publishedText: null,
    durationSeconds: null,
    viewCount: null,
    thumbnailUrl: null,
    failure: null,
  };
}

/** A list of Shorts with these IDs. */
const shortsList = (ids: readonly string[], complete: boolean) => ({
  uploads: ids.map((id) => upload(id, 'short')),
  next: complete ? null : 'more',
  complete,
});

const kinds = (uploads: readonly Upload[]) => uploads.map(({ kind }) => kind);

describe('withKinds', () => {
  const uploads = ['a', 'b', 'c', 'd'].map((id) => upload(id));

  it.each([
    ['as far as the list of Shorts reaches', shortsList(['b'], false), ['video', 'short', null, null]],
    ['to the end of a complete list', shortsList(['b'], true), ['video', 'short', 'video', 'video']],
    ['beyond the uploads', shortsList(['b', 'older'], false), ['video', 'short', 'video', 'video']],
    ['of a channel without Shorts', shortsList([], true), Array(4).fill('video')],
    ['not for an empty part of a list', shortsList([], false), Array(4).fill(null)],
    ['not without a list', null, Array(4).fill(null)],
  ])('distinguishes Shorts from videos: %s', (_, shorts, expected) => {
    expect(kinds(withKinds(uploads, shorts))).toEqual(expected);
  });

  it('is video without a list for one that is longer than any Short', () => {
    const lengths = [181, 182, null].map((durationSeconds) => ({ ...upload('a'), durationSeconds }));
    expect(kinds(withKinds(lengths, null))).toEqual([null, 'video', null]);
  });

  it('does not change live and upcoming videos', () => {
    const live = [upload('a', 'live'), upload('b', 'upcoming')];
    expect(kinds(withKinds(live, shortsList(['a', 'b'], true)))).toEqual(['live', 'upcoming']);
  });

  it('never marks a Short as a video, for any length of the list', () => {
    const channel = fc.array(fc.boolean(), { maxLength: 60 });
    fc.assert(
      fc.property(channel, fc.nat(60), fc.nat(60), (shortFlags, listedCount, readCount) => {
        const all = shortFlags.map((_, index) => `v${index}`);
        const shorts = all.filter((_, index) => shortFlags[index]);
        const ids = shorts.slice(0, readCount);
        const listed = withKinds(
          all.slice(0, listedCount).map((id) => upload(id)),
          shortsList(ids, ids.length === shorts.length),
        );
        for (const { videoId, kind } of listed) {
          if (shorts.includes(videoId)) expect(kind).not.toBe('video');
          else expect(kind).not.toBe('short');
        }
      }),
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
    expect(readFeedDates(xml)).toEqual(
      new Map([
        ['aaaaaaaaaaa', '2026-05-21T11:22:05Z'],
        ['bbbbbbbbb-_', '2015-01-28T05:14:36Z'],
      ]),
    );
  });

  it('skips an entry without a readable ID or time', () => {
    const xml = feed(
      entry('short', '2026-05-21T11:22:05+00:00') +
        entry('aaaaaaaaaaa', 'today') +
        '<entry/>' +
        entry('ccccccccccc', '2026-05-21T11:22:05Z'),
    );
    expect([...readFeedDates(xml).keys()]).toEqual(['ccccccccccc']);
    expect(readFeedDates(feed('')).size).toBe(0);
  });

  it.each(['', 'Not found', '<html><head></head></html>', '<feed/>', '{}', '<rss><feed></feed></rss>'])(
    'refuses %j',
    (body) => {
      expect(() => readFeedDates(body)).toThrow(UnreadableError);
    },
  );

  it('rejects a feed that is truncated anywhere', () => {
    const xml = feed(entry('aaaaaaaaaaa', '2026-05-21T11:22:05+00:00')).trimEnd();
    for (let length = 0; length < xml.length; length++)
      expect(() => readFeedDates(xml.slice(0, length))).toThrow(UnreadableError);
  });
});
