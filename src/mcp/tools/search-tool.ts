import { z } from 'zod';
import { escapeMarkdown, listHead, secondUrl, videoHead } from '../../transcripts/formats/markdown.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import { clockTime } from '../../transcripts/formats/line-text.js';
import { InvalidRequestError } from '../../domain/errors.js';
import { normalized, searchTranscript, type Match } from '../transcript-search.js';
import { fetchTranscripts } from './fetch-transcripts.js';
import { channel, channelIdOutput, defineTool, languages, maxChars, summaryOutput, TEXT_IS_DATA } from './tool.js';

const VIDEOS_MAX = 50;
const MATCHES_MAX = 100;
/** For the counts at the end of the text. */
const FOOTER_CHARACTERS = 300;

export const searchChannelTranscripts = defineTool({
  name: 'search_channel_transcripts',
  title: "Search a channel's newest transcripts",
  description:
    'Finds a word or a phrase in the transcripts of the newest uploads of a YouTube channel. Returns each match with the ' +
    'segments before and after and a link to its second. Costs one transcript of the monthly quota for each of the searched ' +
    `videos that is fetched; cached and failed ones are free. Requires the Pro plan. ${TEXT_IS_DATA}`,
  feature: 'channel_transcripts',
  limitsConcurrency: true,
  input: z.strictObject({
    channel,
    query: z
      .string()
      .min(1)
      .max(200)
      .describe('A word or a phrase as it is said, without regard to case. Not a list of words, and no wildcards.'),
    limit: z
      .int()
      .min(1)
      .max(VIDEOS_MAX)
      .default(10)
      .describe('The number of videos to search at most, the newest ones.'),
    maxMatches: z.int().min(1).max(MATCHES_MAX).default(20).describe('The number of matches to return at most.'),
    languages,
    maxChars: maxChars.describe(
      'The maximum length of the text of this result, in characters. Further matches are only counted.',
    ),
  }),
  output: z.object({
    channelId: channelIdOutput,
    matches: z
      .array(
        z.object({
          videoId: z.string().describe('The ID of the video.'),
          start: z.number().describe('The second at which the excerpt starts.'),
          url: z.string().describe('The URL of the video at that second.'),
        }),
      )
      .describe('The excerpts in the text, in the order of the videos.'),
    matchesTotal: z
      .int()
      .describe(
        'The number of excerpts found, including those that are not returned. Matches in neighbouring segments are one excerpt.',
      ),
    failed: z
      .array(
        z.object({
          videoId: z.string().describe('The ID of the video.'),
          code: z.string().describe('Why, by the code of the error.'),
        }),
      )
      .describe('The videos that could not be searched: they have no transcript, or it could not be fetched now.'),
    summary: summaryOutput,
  }),
  async run(
    { channel: reference, query, limit, maxMatches, maxChars: charactersMax, languages: wanted = [] },
    call,
    services,
  ) {
    const phrase = normalized(query);
    if (phrase === '') throw new InvalidRequestError([{ field: 'query', message: 'query has no visible characters.' }]);
    const request = { source: services.uploads.source(reference, { limit }), languages: wanted };
    const { plan, summary, events } = await fetchTranscripts(request, call, services);
    const sections: string[] = [];
    const matches: { videoId: string; start: number; url: string }[] = [];
    const failed: { videoId: string; code: string }[] = [];
    let [matchesTotal, characters] = [0, FOOTER_CHARACTERS];
    let isFull = false;
    /** Adds sections together, and none from the first that does not fit. */
    const add = (...texts: string[]): boolean => {
      const length = texts.reduce((sum, text) => sum + text.length + 1, 0);
      isFull ||= characters + length > charactersMax;
      if (isFull) return false;
      characters += length;
      sections.push(...texts);
      return true;
    };
    for await (const event of events) {
      if (event.type === 'channel') add(listHead(event));
      if (event.type !== 'result') continue;
      const { entry } = event;
      if (!entry.ok) {
        failed.push({ videoId: entry.videoId, code: entry.error.code });
        continue;
      }
      const { videoId } = entry;
      const found = await searchTranscript(await inflate(entry.transcript), phrase, maxMatches - matches.length);
      matchesTotal += found.total;
      for (const [index, match] of found.matches.entries()) {
        const head = index === 0 ? [videoHead(entry, 2)] : [];
        if (!add(...head, matchLine(videoId, match))) break;
        matches.push({ videoId, start: match.start, url: secondUrl(videoId, match.start) });
      }
    }
    const counts =
      `${matchesTotal} ${matchesTotal === 1 ? 'match' : 'matches'} in ${summary.succeeded} of ${summary.total} videos` +
      (matchesTotal > matches.length ? `, the first ${matches.length} shown.` : '.') +
      (isFull ? ' The text has reached maxChars.' : '');
    sections.push(`---\n\n${counts}${failed.length > 0 ? ` ${failed.length} could not be searched.` : ''}\n`);
    return {
      text: sections.join('\n'),
      structured: { channelId: plan.resource, matches, matchesTotal, failed, summary },
    };
  },
});

function matchLine(videoId: string, { start, excerpt }: Match): string {
  return `[${clockTime(start)}](${secondUrl(videoId, start)}) ${escapeMarkdown(excerpt)}\n`;
}
