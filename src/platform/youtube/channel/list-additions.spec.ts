import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Upload, VideoKind } from '../../../domain/transcript.js';
import { needsShorts, readFeedDates, UNMET_MIN, withKinds } from './list-additions.js';
import { NOTHING_LISTED, type ShortsBeside } from './list-progress.js';
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

const NEXT = { progress: NOTHING_LISTED, token: 'more' };

/** Shorts with these IDs, as of the start of the uploads. */
const shortsOf = (below: readonly string[], complete: boolean): ShortsBeside => ({
  ...{ above: [], below, next: complete ? null : NEXT },
  ...{ complete, inStep: true },
});

const kinds = (uploads: readonly Upload[]) => uploads.map(({ kind }) => kind);

describe('withKinds', () => {
  const uploads = ['a', 'b', 'c', 'd'].map((id) => upload(id));
  const fewest = ['v', 'w', 'x', 'y', 'z'];

  it.each<[string, ShortsBeside, (string | null)[]]>([
    ['as far as the list of Shorts reaches', shortsOf(['b'], false), ['video', 'short', null, null]],
    ['to the end of a complete list', shortsOf(['b'], true), ['video', 'short', 'video', 'video']],
    ['beyond the uploads', shortsOf(['b', 'older'], false), ['video', 'short', 'video', 'video']],
    ['of a channel without Shorts', shortsOf([], true), Array(4).fill('video')],
    ['not for an empty part of a list', shortsOf([], false), Array(4).fill(null)],
    [
      'with one of the page before again',
      { ...shortsOf(['z'], false), above: ['a'] },
      ['short', 'video', 'video', 'video'],
    ],
    ['not out of step', { ...shortsOf(['y', 'z'], false), inStep: false }, Array(4).fill(null)],
    [
      'from where it is in step again',
      { ...shortsOf(['b', 'z'], false), inStep: false },
      ['video', 'short', 'video', 'video'],
    ],
  ])('distinguishes Shorts from videos: %s', (_, shorts, expected) => {
    expect(kinds(withKinds(uploads, shorts).uploads)).toEqual(expected);
  });

  it('takes a video after the last Short for one only when enough read Shorts stand below', () => {
    const after = (below: number) => {
      const read = ['b', ...fewest.slice(0, below)];
      return kinds(withKinds(uploads, shortsOf(read, false), UNMET_MIN).uploads).at(-1);
    };
    expect([after(4), after(5)]).toEqual([null, 'video']);
  });

  it('does not change live and upcoming videos', () => {
    const live = [upload('a', 'live'), upload('b', 'upcoming')];
    expect(kinds(withKinds(live, shortsOf(['a', 'b'], true)).uploads)).toEqual(['live', 'upcoming']);
  });

  it('hands on the Shorts that were not met, and the last that were', () => {
    const { shorts } = withKinds(uploads, { ...shortsOf(['deleted', 'c', 'y', 'z'], false), above: ['x'] });
    expect(shorts).toMatchObject({ above: ['x', 'deleted', 'c'], below: ['y', 'z'], inStep: true });
    const many = Array.from({ length: 1_000 }, (_, index) => `s${index}`);
    const { above, below } = withKinds([upload('s499')], shortsOf(many, false)).shorts;
    expect([above.length, above.at(-1), below.length]).toEqual([100, 's499', 400]);
  });

  it.each([
    ['what can be a Short, when none is known below', uploads, shortsOf([], false), true],
    ['and when these can have been deleted', uploads, shortsOf(fewest.slice(1), false), true],
    ['not when some are', uploads, shortsOf(fewest, false), false],
    ['unless these can stand above', uploads, { ...shortsOf(fewest, false), inStep: false }, true],
    ['not for known Shorts', uploads, shortsOf(['a', 'b', 'c', 'd'], false), false],
    ['not for others', [upload('a', 'video'), upload('b', 'live')], shortsOf([], false), false],
    ['not at the end', uploads, shortsOf([], true), false],
  ])('needs more Shorts for %s', (_, listed, shorts, expected) => {
    expect(needsShorts(listed, shorts)).toBe(expected);
  });

  it('never marks a Short as a video, page after page, whatever is deleted or cannot be read', () => {
    const channel = fc.array(fc.constantFrom('video', 'short', 'gone'), { maxLength: 120 });
    const failures = fc.infiniteStream(fc.boolean());
    fc.assert(
      fc.property(
        channel,
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 6, max: 30 }),
        failures,
        (all, size, shortsSize, fails) => {
          const listed = all.flatMap((kind, index) => (kind === 'gone' ? [] : [upload(`v${index}`)]));
          // Four are deleted after they were read.
          const deleted = all.flatMap((kind, index) => (kind === 'gone' ? [`v${index}`] : [])).slice(0, 4);
          const listedShorts = all
            .map((_, index) => `v${index}`)
            .filter((id, index) => all[index] === 'short' || deleted.includes(id));
          let readCount = 0;
          const readOn = (shorts: ShortsBeside): ShortsBeside => {
            const more = listedShorts.slice(readCount, (readCount += shortsSize));
            const complete = readCount >= listedShorts.length;
            return { ...shorts, below: [...shorts.below, ...more], next: complete ? null : NEXT, complete };
          };
          let beside = readOn(shortsOf([], false));
          for (let place = 0; place < listed.length; place += size) {
            const page = listed.slice(place, place + size);
            const [failing] = fails.take(1);
            while (failing !== true && needsShorts(page, beside)) beside = readOn(beside);
            const read = withKinds(page, beside, UNMET_MIN);
            beside = read.shorts;
            for (const { videoId, kind } of read.uploads) {
              if (listedShorts.includes(videoId)) expect(kind).not.toBe('video');
              else expect(kind).not.toBe('short');
            }
            if (beside.inStep && failing !== true) expect(kinds(read.uploads)).not.toContain(null);
          }
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
