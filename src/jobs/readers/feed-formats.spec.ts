import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyText } from '../../../test/texts/any-text.js';
import type { Segment } from '../../domain/transcript.js';
import { FEED_FORMATS, htmlOf, TEXT_CHARACTERS_MAX, type FeedItem } from './feed-formats.js';

const VIDEO_ID = 'hl-dinghy__';
const AT = new Date('2026-11-20T16:21:44Z');

const segment = (text: string, start: number): Segment => ({ text, start, duration: 2 });

function item(text: string, html = ''): FeedItem {
  const url = `https://www.youtube.com/watch?v=${VIDEO_ID}`;
  return { id: url, url, title: text, channel: text, publishedAt: AT, updatedAt: AT, html, transcripts: [] };
}

const head = (text: string) => ({ id: 'urn:x', title: text, url: text, homeUrl: text, updatedAt: AT });

/** All that XML 1.0 does not allow, with the ends of what is not escaped. */
// eslint-disable-next-line no-control-regex
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udfff]/;
const withoutPairs = (text: string): string => text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, '');

describe('the text of an entry', () => {
  it('is paragraphs of about a minute, each with a link to its second, whose text is no markup', async () => {
    const segments = [segment('Tea & <b>cake</b>', 0.5), segment('at "five".', 30), segment('The end.', 75)];
    expect(await htmlOf(VIDEO_ID, new Map([['en', segments]]))).toBe(
      `<p><a href="https://youtu.be/${VIDEO_ID}?t=0">0:00</a> Tea &amp; &lt;b&gt;cake&lt;/b&gt; at "five".</p>` +
        `<p><a href="https://youtu.be/${VIDEO_ID}?t=75">1:15</a> The end.</p>`,
    );
  });

  it('has a heading for each of several languages', async () => {
    const transcript = new Map(['en', 'de'].map((language) => [language, [segment(language, 0)]]));
    expect((await htmlOf(VIDEO_ID, transcript)).match(/<h3>.*?<\/h3>/g)).toEqual(['<h3>en</h3>', '<h3>de</h3>']);
  });

  it('ends with a link to where it goes on when it is longer than a feed has it', async () => {
    const segments = Array.from({ length: 100 }, (_, index) =>
      segment('x'.repeat(TEXT_CHARACTERS_MAX / 50), index * 60),
    );
    const html = await htmlOf(VIDEO_ID, new Map([['en', segments]]));
    expect(html.match(/<p>/g)).toHaveLength(51);
    expect(html).toMatch(
      new RegExp(`<p><a href="https://youtu.be/${VIDEO_ID}\\?t=3000">The text goes on at 50:00</a></p>$`),
    );
  });
});

describe('a feed of any texts', () => {
  it.each(['atom', 'rss'] as const)('as %s has only characters of XML, and no markup but its own', (name) => {
    const { head: begin, item: entry, end } = FEED_FORMATS[name];
    const tags = (text: string) => [...text.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replace(/="[^"]*"/g, ''));
    const written = (text: string) => begin(head(text)) + entry(item(text, text), 0) + end;
    const expected = tags(written('plain'));
    fc.assert(
      fc.property(
        fc.oneof(anyText(), fc.string({ unit: fc.constantFrom(...'<>&"\'[]!\ud800\ufffe\u0000a') })),
        (text) => {
          const document = written(text);
          expect(withoutPairs(document)).not.toMatch(NOT_XML);
          expect(tags(document)).toEqual(expected);
          expect(document).not.toMatch(/&(?!(?:amp|lt|gt|quot|apos);)/);
        },
      ),
    );
  });

  it('as JSON Feed is JSON', () => {
    const { head: begin, item: entry, end } = FEED_FORMATS.json;
    fc.assert(
      fc.property(anyText(), (text) => {
        const document = begin(head(text)) + entry(item(text, text), 0) + entry(item(text, text), 1) + end;
        expect(JSON.parse(document)).toMatchObject({ items: [{ content_html: text }, { content_html: text }] });
      }),
    );
  });
});
