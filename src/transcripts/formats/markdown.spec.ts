import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import MarkdownIt, { type Token } from 'markdown-it';
import { anyText } from '../../../test/texts/any-text.js';
import type { Segment } from '../../domain/transcript.js';
import type { VideoMetadata } from '../dto/transcripts-response.dto.js';
import { lineText } from './line-text.js';
import { failureLine, listHead, paragraphs, summaryLine, videoHead, videoNotes, videoText } from './markdown.js';

/** With HTML, tables, strikethrough and bare URLs, as on GitHub. */
const parser = new MarkdownIt({ html: true, linkify: true });
parser.linkify.set({ fuzzyLink: false });

/** Texts that are markup in Markdown, as a line, at the start of one or within it. */
const HOSTILE = [
  '# heading',
  '- item',
  '> quote',
  '```js',
  '`code`',
  '    code',
  '---',
  '***bold***',
  '__init__',
  'snake_case_name',
  '~~gone~~',
  '[link](https://example.com)',
  '![image](https://example.com/x.png)',
  '[note]: https://example.com',
  '[^1]',
  '| a | b |\n|---|---|',
  '<script>alert(1)</script>',
  '<!-- comment -->',
  '<b',
  'https://example.com/path',
  'www.example.com',
  'someone@example.com',
  '&lt;b&gt;',
  '&amp;amp;',
  'AT&T',
  '\\',
  '\\*',
  '\\\n',
  '$x$',
  '  \n',
  '\r\n\r\n# heading',
  '\u2028',
  '\0',
  '\u2067שלום\u2069',
  'سلام دنیا',
  '今日は、世界。',
  '👩‍👩‍👧',
];

const hostile = fc.oneof(
  fc
    .array(
      fc.oneof(fc.constantFrom(...HOSTILE), fc.constantFrom('and ', ' ', '.', '[', ']', '(', ')', '*', '_', '`')),
      {
        maxLength: 5,
      },
    )
    .map((parts) => parts.join('')),
  anyText({ maxLength: 12 }),
);

const segments: fc.Arbitrary<Segment[]> = fc
  .array(
    fc.record({ text: hostile, start: fc.double({ min: 0, max: 20_000, noNaN: true }), duration: fc.constant(2) }),
    {
      maxLength: 12,
    },
  )
  .map((list) => list.sort((one, other) => one.start - other.start));

function metadata(title: string | null, fields: Partial<VideoMetadata> = {}): VideoMetadata {
  return {
    title,
    url: 'https://www.youtube.com/watch?v=hl-dinghy__',
    publishedAt: '2026-10-31T19:00:00Z',
    publishedText: '3 weeks ago',
    durationSeconds: 612,
    viewCount: 1,
    thumbnailUrl: null,
    kind: 'video',
    captionTracks: [],
    ...fields,
  };
}

const markdown = (list: Segment[]): string => paragraphs('hl-dinghy__', list);

/** The text that a reader sees; throws for any markup other than links and code spans, which this project writes. */
function shown({ children }: Token): string {
  let text = '';
  for (const child of children ?? []) {
    if (child.type === 'text' || child.type === 'code_inline') text += child.content;
    else if (child.type === 'link_open')
      expect(child.attrGet('href')).toMatch(/^https:\/\/(?:youtu\.be|www\.youtube\.com)\//);
    else if (!['link_close', 'hardbreak', 'softbreak'].includes(child.type))
      throw new Error(`The text has markup: ${child.type}`);
  }
  return text;
}

const types = (tokens: readonly Token[]): string[] => tokens.map(({ type }) => type);
const withoutSpaces = (text: string): string => text.replace(/\s/g, '');

describe('the text of a video in Markdown', () => {
  it('is paragraphs of literal text only, whatever was said', () => {
    fc.assert(
      fc.property(segments, (list) => {
        const tokens = parser.parse(markdown(list), {});
        const expected = ['paragraph_open', 'inline', 'paragraph_close'];
        expect(types(tokens)).toEqual(Array.from({ length: tokens.length }, (_, index) => expected[index % 3]));
        const text = tokens
          .filter(({ type }) => type === 'inline')
          .map((token) => shown(token).replace(/^[\d:]+ /, ''));
        const spoken = list.map((segment) => lineText(segment.text)).join('');
        expect(withoutSpaces(text.join(''))).toBe(withoutSpaces(spoken));
      }),
      { numRuns: 500 },
    );
  });

  it('has a paragraph for about a minute, which ends with a sentence if one ends after 45 seconds', () => {
    const said = [
      [0.24, 'Good morning'],
      [30, 'from the boatyard.'],
      [46, 'This dinghy'],
      [100, 'was built'],
      [106, 'in 1962.'],
      [3661, 'The end'],
    ] as const;
    const link = (label: string, second: number): string => `[${label}](https://youtu.be/hl-dinghy__?t=${second})`;
    expect(markdown(said.map(([start, text]) => ({ text, start, duration: 1 })))).toBe(
      `\n${link('0:00', 0)} Good morning from the boatyard.\n` +
        `\n${link('0:46', 46)} This dinghy was built\n` +
        `\n${link('1:46', 106)} in 1962.\n` +
        `\n${link('1:01:01', 3661)} The end\n`,
    );
  });

  it('has a paragraph for each chunk with chunkSeconds', async () => {
    const list = [0, 12].map((start) => ({ text: `At ${start}`, start, duration: 12 }));
    const link = (label: string, second: number): string => `[${label}](https://youtu.be/hl-dinghy__?t=${second})`;
    expect(await videoText('hl-dinghy__', new Map([['en', list]]), { chunkSeconds: 15 })).toBe(
      `\n${link('0:00', 0)} At 0\n\n${link('0:12', 12)} At 12\n`,
    );
  });

  it('joins scripts without spaces as they are written', () => {
    const list = ['今日は、', '世界。', 'Hello', '世界', 'שלום', 'עולם'].map((text, start) => ({
      text,
      start,
      duration: 1,
    }));
    expect(markdown(list)).toContain('今日は、世界。 Hello 世界 שלום עולם\n');
  });

  it('has a heading for each language when several were requested', async () => {
    const transcript = new Map([
      ['de', [{ text: 'Guten Tag', start: 0, duration: 1 }]],
      ['en', [{ text: 'Hello', start: 0, duration: 1 }]],
    ]);
    const link = '[0:00](https://youtu.be/hl-dinghy__?t=0)';
    expect(await videoText('hl-dinghy__', transcript, { languageLevel: 3 })).toBe(
      `\n### de\n\n${link} Guten Tag\n\n### en\n\n${link} Hello\n`,
    );
  });
});

describe('what is included of a video', () => {
  const notes = (fields: Partial<VideoMetadata>): string =>
    videoNotes({ videoId: 'hl-dinghy__', metadata: metadata('The dinghy', fields) });

  it('are its tags, its chapters with links and its description, each only if there is one', () => {
    const chapters = [
      { title: 'Keel', start: 0 },
      { title: '*Varnish*', start: 75.5 },
    ];
    const link = 'https://youtu.be/hl-dinghy__';
    expect(notes({ tags: ['boat', 'wood'], chapters, description: 'Two parts:\n\n1. Keel\r\n- Varnish\n' })).toBe(
      `\nTags: boat, wood\n\nChapters:\n\n- [0:00](${link}?t=0) Keel\n- [1:15](${link}?t=75) \\*Varnish\\*\n` +
        '\nDescription:\n\n> Two parts:  \n>  \n> 1\\. Keel  \n> \\- Varnish  \n',
    );
    expect(notes({})).toBe('');
    expect(notes({ tags: null, chapters: null, description: null })).toBe('');
    expect(notes({ tags: [], chapters: [], description: null })).toBe('');
  });

  it('are literal text only, whatever it is', () => {
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 1, maxLength: 5 }), hostile, (lines, tag) => {
        const description = lines.join('\n');
        const tokens = parser.parse(notes({ tags: [tag], chapters: [{ title: tag, start: 0 }], description }), {});
        const kinds = new Set(types(tokens).map((type) => type.replace(/_(?:open|close)$/, '')));
        for (const kind of kinds)
          expect(['paragraph', 'inline', 'bullet_list', 'list_item', 'blockquote']).toContain(kind);
        const quote = tokens.slice(types(tokens).indexOf('blockquote_open'));
        const text = quote.filter(({ type }) => type === 'inline').map(shown);
        expect(withoutSpaces(text.join(''))).toBe(withoutSpaces(lineText(description)));
      }),
      { numRuns: 500 },
    );
  });
});

describe('the head of a video', () => {
  it('is one heading of literal text and one line, whatever the title', () => {
    fc.assert(
      fc.property(hostile, hostile, (title, publishedText) => {
        const head = videoHead(
          { videoId: 'hl-dinghy__', metadata: metadata(title, { publishedAt: null, publishedText }) },
          2,
        );
        const tokens = parser.parse(head, {});
        const heading = ['heading_open', 'inline', 'heading_close'];
        expect(types(tokens)).toEqual([...heading, 'paragraph_open', 'inline', 'paragraph_close']);
        expect(tokens[0]?.tag).toBe('h2');
        const [first] = tokens.filter(({ type }) => type === 'inline');
        if (first) expect(withoutSpaces(shown(first))).toBe(withoutSpaces(lineText(title) || 'hl-dinghy__'));
      }),
      { numRuns: 300 },
    );
  });

  it('has title, link, date and length, each only if it is known', () => {
    const url = '<https://www.youtube.com/watch?v=hl-dinghy__>';
    expect(videoHead({ videoId: 'hl-dinghy__', metadata: metadata('The dinghy') }, 1)).toBe(
      `# The dinghy\n\n${url} · 2026-10-31 · 10:12\n`,
    );
    const unknown = metadata(null, { publishedAt: null, publishedText: null, durationSeconds: null });
    expect(videoHead({ videoId: 'hl-dinghy__', metadata: unknown }, 2)).toBe(`## \`hl-dinghy__\`\n\n${url}\n`);
  });
});

describe('a document about several videos', () => {
  it('starts with the channel, has one line for a failure and ends with the counts', () => {
    const failed = {
      videoId: 'hl-silent__',
      ok: false as const,
      metadata: metadata('One [hour]'),
      error: { code: 'transcript_unavailable' as const, message: 'This video has no captions.', retryable: false },
    };
    expect(
      [
        listHead({
          type: 'channel',
          channel: { id: 'UCharbourlight__________', name: 'Harbour *Light*', handle: '@harbour_light' },
        }),
        failureLine(failed),
        summaryLine({ total: 1, succeeded: 0, failed: 1, cached: 0, fetched: 0 }),
      ].join('\n'),
    ).toBe(
      '# Harbour \\*Light\\*\n\n`@harbour_light` · <https://www.youtube.com/channel/UCharbourlight__________>\n' +
        '\n- [One \\[hour\\]](https://youtu.be/hl-silent__): no transcript. This video has no captions. (`transcript_unavailable`)\n' +
        '\n---\n\n1 video: 0 with a transcript, 1 without.\n',
    );
  });

  it('ends with a line about the video of since when it was not found', () => {
    const counts = { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0 };
    const line = '\nThe video of `since` is not among the newest uploads: these are all of them up to the limit.\n';
    expect(summaryLine({ ...counts, sinceFound: true })).toBe(summaryLine(counts));
    expect(summaryLine({ ...counts, sinceFound: false })).toBe(summaryLine(counts) + line);
  });

  it('starts with the title of a playlist, or its ID', () => {
    const head = (title: string | null): string => listHead({ type: 'playlist', playlist: { id: 'PL_boats', title } });
    const link = '<https://www.youtube.com/playlist?list=PL_boats>';
    expect(head('All *boats*')).toBe(`# All \\*boats\\*\n\n${link}\n`);
    expect(head(null)).toBe(`# \`PL_boats\`\n\n${link}\n`);
  });

  it('has failures of one line each, whatever their titles and messages', () => {
    fc.assert(
      fc.property(hostile, hostile, (title, message) => {
        const error = { code: 'language_unavailable' as const, message, retryable: false };
        const line = failureLine({ videoId: 'hl-silent__', ok: false, metadata: metadata(title), error });
        const tokens = parser.parse(`\n${line}\n${line}`, {});
        const item = ['list_item_open', 'paragraph_open', 'inline', 'paragraph_close', 'list_item_close'];
        expect(types(tokens)).toEqual(['bullet_list_open', ...item, ...item, 'bullet_list_close']);
        for (const token of tokens.filter(({ type }) => type === 'inline')) {
          expect(withoutSpaces(shown(token))).toBe(
            withoutSpaces(
              `${lineText(title) || 'hl-silent__'}: no transcript. ${lineText(message)} (language_unavailable)`,
            ),
          );
        }
      }),
      { numRuns: 300 },
    );
  });
});
