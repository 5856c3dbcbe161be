import { z } from 'zod';
import { Fields, Restated } from '../../http/routes/field.js';
import { LibrarySearchQueryDto } from '../../library/dto/library-request.dto.js';
import { codeSpan, escapeMarkdown } from '../../transcripts/formats/markdown.js';
import { cursorOutput, defineTool, MaxCharsInput, TEXT_IS_DATA } from './tool.js';

class LibraryInput extends Fields(
  Restated(LibrarySearchQueryDto, {
    limit: { default: 10, description: 'Passages at most.' },
    after: { hint: 'The `next` of the last result, for further passages.' },
  }),
  Restated(MaxCharsInput, { maxChars: { description: 'Characters of the text at most.' } }),
) {}

export const searchLibrary = defineTool({
  name: 'search_library',
  title: 'Search the library',
  description:
    'Finds passages of about 30 seconds in the transcripts that the organization keeps, each with a link to its second to cite. ' +
    `Free. Requires the Pro plan. ${TEXT_IS_DATA}`,
  feature: 'library',
  limitsConcurrency: true,
  effect: 'reads',
  input: LibraryInput,
  output: z.object({
    results: z.array(z.object({ videoId: z.string(), start: z.number(), url: z.string() })),
    total: z.int(),
    next: cursorOutput,
  }),
  async run({ maxChars, ...query }, { caller }, { library }) {
    const page = await library.search(caller, query);
    const { results, total, next } = page;
    const sections = results.map(({ videoId, title, channel, publishedAt, url, text }) => {
      const name = title === null ? codeSpan(videoId) : escapeMarkdown(title);
      const of = [channel && escapeMarkdown(channel.name), publishedAt?.slice(0, 'yyyy-mm-dd'.length)].filter(Boolean);
      return `[${name}](${url})${of.length > 0 ? ` (${of.join(', ')})` : ''}: ${escapeMarkdown(text)}\n\n`;
    });
    const ends = sections.map((_section, index) => sections.slice(0, index + 1).join('').length);
    const shown = sections.filter((_section, index) => index === 0 || (ends[index] ?? 0) <= maxChars);
    const rest = shown.length < sections.length ? ` The text has reached maxChars after ${shown.length}.` : '';
    const further = next === null ? '' : ` Further ones: after=${codeSpan(next)}.`;
    const text = `${shown.join('')}${results.length} of ${total} passages.${rest}${further}\n`;
    return { text, structured: page };
  },
});
