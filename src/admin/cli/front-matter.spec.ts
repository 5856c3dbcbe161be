import { describe, expect, it } from '@jest/globals';
import type { VideoTranscript } from '@channel-transcripts/client';
import fc from 'fast-check';
import { parseDocument } from 'yaml';
import { anyText } from '../../../test/texts/any-text.js';
import { lineText } from '../../transcripts/formats/line-text.js';
import { frontMatter } from './front-matter.js';

const entryOf = (metadata: Partial<VideoTranscript['metadata']>, languages = ['en']): VideoTranscript => {
  const url = 'https://www.youtube.com/watch?v=hl-regatta_';
  const transcript = Object.fromEntries(languages.map((language) => [language, []]));
  return { videoId: 'hl-regatta_', ok: true, metadata: { url, ...metadata }, transcript } as unknown as VideoTranscript;
};

/** What a reader of YAML 1.1 or 1.2 finds between the two lines. */
function parsed(text: string, version: '1.1' | '1.2'): unknown {
  const [, yaml = ''] = /^---\n(.*)\n---\n\n$/s.exec(text) ?? [];
  const document = parseDocument(yaml, { version });
  expect([document.errors, document.warnings]).toEqual([[], []]);
  return document.toJS();
}

describe('front matter', () => {
  it('has the title, channel, address, date, language and tags', () => {
    const metadata = { title: 'Regatta: "day 1" #2', publishedAt: '2026-05-21T11:22:05Z', tags: ['two  words', 'sea'] };
    expect(frontMatter(entryOf(metadata, ['de', 'en']), 'Harbour - Light')).toBe(
      [
        '---',
        'title: "Regatta: \\"day 1\\" #2"',
        'channel: "Harbour - Light"',
        'url: "https://www.youtube.com/watch?v=hl-regatta_"',
        'published: "2026-05-21T11:22:05Z"',
        'language: "de"',
        'tags: ["two-words","sea"]',
        '---\n\n',
      ].join('\n'),
    );
  });

  it('states what is unknown as null, and no tags as an empty list', () => {
    const text = frontMatter(entryOf({ title: null, publishedAt: null, tags: null }, []), null);
    expect(parsed(text, '1.2')).toMatchObject({
      title: null,
      channel: null,
      published: null,
      language: null,
      tags: [],
    });
  });

  it('is read as it was meant, by YAML 1.1 and 1.2, for any title, channel and tags', () => {
    const texts = fc.oneof(
      anyText(),
      fc.constantFrom('---', '...', 'no', '~', '1e3', '- a', '{', '\u2028', '\ufeff\uffff'),
    );
    fc.assert(
      fc.property(texts, texts, fc.array(texts), fc.constantFrom('1.1', '1.2'), (title, channel, tags, version) => {
        const text = frontMatter(entryOf({ title, publishedAt: null, tags }), channel);
        const words = tags.map((tag) => lineText(tag).replace(/\s+/g, '-'));
        const expected = { title: lineText(title), channel: lineText(channel), language: 'en', tags: words };
        expect(parsed(text, version)).toMatchObject(expected);
        // What YAML calls printable, which readers such as PyYAML require.

        expect(text).toMatch(/^[\t\n\x20-\x7e\x85\u00a0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u);
      }),
    );
  });
});
