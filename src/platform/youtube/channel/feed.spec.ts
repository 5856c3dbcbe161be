import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readFeedDates } from './feed.js';
import { UnreadableError } from '../response-parsing.js';

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
  });

  it('reads a channel without uploads', () => {
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

  it('returns dates or an UnreadableError for any text', () => {
    const piece = fc.constantFrom(
      '<feed>',
      '</feed>',
      '<entry>',
      '</entry>',
      '<yt:videoId>',
      'aaaaaaaaaaa',
      '</yt:videoId>',
      '<published>',
      '2026-05-21T11:22:05Z',
      '</published>',
      '<',
      '"',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string())), (pieces) => {
        try {
          expect(readFeedDates(pieces.join(''))).toBeInstanceOf(Map);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableError);
        }
      }),
      { numRuns: 200 },
    );
  });
});
