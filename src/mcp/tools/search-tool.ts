import { z } from 'zod';
import { invalidField } from '../../domain/errors.js';
import { Field, Fields, Restated } from '../../http/routes/field.js';
import { codeSpan, escapeMarkdown, listHead, secondUrl, videoHead } from '../../transcripts/formats/markdown.js';
import { inflate, readTranscript } from '../../transcripts/cache/transcript-text.js';
import { clockTime, lineText, spaceBetween } from '../../transcripts/formats/line-text.js';
import {
  ChannelInput,
  costLine,
  defineTool,
  KindsInput,
  LanguageInput,
  MaxCharsInput,
  summaryOutput,
  TEXT_IS_DATA,
} from './tool.js';
import { nextTurn } from '../../domain/waiting.js';
import type { Segment } from '../../domain/transcript.js';

/** Characters of one segment in an excerpt; only captions that are not divided into lines have more. */
const LINE_CHARACTERS_MAX = 300;

/** A place where a transcript contains the phrase. */
export interface Match {
  /** The start of the segment in which the phrase begins, in seconds. */
  start: number;
  /** That segment, the one before and the one after. */
  excerpt: string;
}

/**
 * Finds a phrase in the languages of a transcript, also across segments. Compares without case, the forms of Unicode and
 * runs of white space. Matches whose excerpts would share a segment with the last one are part of it.
 *
 * @param transcript the stored JSON
 * @param phrase as `normalized` returns it
 */
export async function searchTranscript(transcript: Buffer, phrase: string): Promise<Match[]> {
  const matches: Match[] = [];
  for (const segments of (await readTranscript(transcript)).values()) {
    await nextTurn();
    for (const match of matchesIn(segments, phrase)) matches.push(match);
  }
  return matches;
}

/** The form in which texts are compared. */
export function normalized(text: string): string {
  return lineText(text).normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim();
}

function* matchesIn(segments: readonly Segment[], phrase: string): Generator<Match> {
  const lines: { line: string; start: number; offset: number }[] = [];
  let whole = '';
  for (const { text, start } of segments) {
    const compared = normalized(text);
    if (compared === '') continue;
    const line = lineText(text);
    const last = lines.at(-1);
    if (last) whole += spaceBetween(last.line, line);
    lines.push({ line, start, offset: whole.length });
    whole += compared;
  }
  /** The segment of the last match, and the one from which an excerpt repeats nothing. */
  let [index, shownTo] = [0, 0];
  for (let from = 0; ;) {
    const at = whole.indexOf(phrase, from);
    if (at === -1) return;
    while ((lines[index + 1]?.offset ?? Infinity) <= at) index++;
    const excerpt = lines
      .slice(Math.max(shownTo, index - 1), index + 2)
      .map(({ line }) => excerptOf(line))
      .reduce((before, line) => `${before}${spaceBetween(before, line)}${line}`);
    yield { start: lines[index]?.start ?? 0, excerpt };
    shownTo = index + 2;
    const following = lines[shownTo];
    if (!following) return;
    from = Math.max(at + phrase.length, following.offset);
  }
}

function excerptOf(text: string): string {
  return text.length <= LINE_CHARACTERS_MAX ? text : `${text.slice(0, LINE_CHARACTERS_MAX).toWellFormed()}…`;
}

const VIDEOS_MAX = 50;
const MATCHES_MAX = 100;
/** About eight hours of speech, which take 30 ms: a search counts as a call for each. */
const BYTES_PER_CALL = 1024 * 1024;
/** For the counts at the end of the text, and there for each video that could not be searched. */
const FOOTER_CHARACTERS = 400;
const FAILURE_CHARACTERS = 20;

class SearchInput extends Fields(
  ChannelInput,
  KindsInput,
  LanguageInput,
  Restated(MaxCharsInput, {
    maxChars: { description: 'Characters of the text at most. Further matches are only counted.' },
  }),
) {
  @Field.text({
    required: true,
    rule: 'a text of 1 to 200 characters',
    min: 1,
    max: 200,
    description: 'A word or a phrase as it is said, in any case. Not a list of words, and no wildcards.',
  })
  query: string;

  @Field.integer({ min: 1, max: VIDEOS_MAX, default: 10, description: 'Videos to search at most.' })
  limit: number;

  @Field.integer({ min: 1, max: MATCHES_MAX, default: 20, description: 'Matches to return at most.' })
  maxMatches: number;
}

export const searchChannelTranscripts = defineTool({
  name: 'search_channel_transcripts',
  title: "Search a channel's newest transcripts",
  description:
    'Finds a word or a phrase in the transcripts of the newest uploads of a YouTube channel. Returns each match with the ' +
    'segments before and after and a link to its second. Costs one transcript of the quota for each video that is ' +
    `fetched; cached and failed ones are free. Requires the Pro plan. ${TEXT_IS_DATA}`,
  feature: 'channel_transcripts',
  limitsConcurrency: true,
  effect: 'reads',
  input: SearchInput,
  output: z.object({
    channelId: z.string(),
    matches: z.array(z.object({ videoId: z.string(), start: z.number(), url: z.string() })),
    matchesTotal: z.int(),
    failed: z.array(z.object({ videoId: z.string(), code: z.string() })),
    summary: summaryOutput,
  }),
  async run(input, context, services) {
    const { query, limit, maxMatches, maxChars: charactersMax } = input;
    const phrase = normalized(query);
    if (phrase === '') throw invalidField('query', 'query has no visible characters.');
    const request = { ...input, source: services.uploads.source(input.channel, input) };
    const delivery = await services.transcripts.start(request, context);
    const { plan, summary } = delivery;
    const matches: { videoId: string; start: number; url: string }[] = [];
    const failed: { videoId: string; code: string }[] = [];
    let text = '';
    const footerCharacters = FOOTER_CHARACTERS + FAILURE_CHARACTERS * limit;
    let [matchesTotal, bytesRead, isFull] = [0, 0, false];
    for await (const event of delivery.events('listed')) {
      if (event.type === 'channel') text += `${listHead(event)}\n`;
      if (event.type !== 'result') continue;
      const { entry } = event;
      const { videoId } = entry;
      if (!entry.ok) {
        failed.push({ videoId, code: entry.error.code });
        continue;
      }
      const found = await searchTranscript(await inflate(entry.transcript), phrase);
      matchesTotal += found.length;
      bytesRead += entry.transcript.jsonBytes;
      let head = `${videoHead(entry, 2)}\n`;
      for (const match of found.slice(0, maxMatches - matches.length)) {
        const section = `${head}${matchLine(videoId, match)}\n`;
        isFull ||= text.length + section.length + footerCharacters > charactersMax;
        if (isFull) break;
        text += section;
        head = '';
        matches.push({ videoId, start: match.start, url: secondUrl(videoId, match.start) });
      }
    }
    const counts =
      `${matchesTotal} ${matchesTotal === 1 ? 'match' : 'matches'} in ${summary.succeeded} of ${summary.total} videos` +
      (matchesTotal > matches.length ? `, the first ${matches.length} shown.` : '.') +
      (isFull ? ' The text has reached maxChars.' : '');
    text += `---\n\n${counts}\n${failuresText(failed)}\n${costLine(summary)}\n`;
    const structured = { channelId: plan.resource, matches, matchesTotal, failed, summary };
    return { text, structured, calls: Math.ceil(bytesRead / BYTES_PER_CALL) };
  },
});

function matchLine(videoId: string, { start, excerpt }: Match): string {
  return `[${clockTime(start)}](${secondUrl(videoId, start)}) ${escapeMarkdown(excerpt)}\n`;
}

function failuresText(failed: readonly { videoId: string; code: string }[]): string {
  const idsOf = (wanted: string) =>
    failed.filter(({ code }) => code === wanted).map(({ videoId }) => codeSpan(videoId));
  const codes = [...new Set(failed.map(({ code }) => code))];
  return codes.map((code) => `- Not searched, ${codeSpan(code)}: ${idsOf(code).join(', ')}\n`).join('');
}
