import type { Segment, Transcript } from '../../domain/transcript.js';
import { joinInTurns } from '../in-turns.js';
import { inflate, readTranscript } from '../cache/transcript-text.js';
import type { ListHeader } from '../sources/video-list.js';
import type { Summary, VideoMetadata } from '../dto/transcripts-response.dto.js';
import type { Entry, TranscriptsEvent } from '../transcript-events.js';
import { clockTime, lineText, SENTENCE_END, spaceBetween, wholeSeconds } from './line-text.js';

/**
 * Characters that CommonMark, GitHub's and Obsidian's Markdown can read as markup within a line: emphasis, code, links, HTML,
 * entities, tables, tags, mentions, formulas, and bare URLs. Markup at the start of a line is not among them, because no
 * line of our documents starts with outside text.
 */
const MARKUP = /[\\`*_[\]<~$#|@]|&(?=#?[0-9a-z]+;)|:(?=\/\/)|(?<=www)\.|[=%](?=[=%])/gi;

/** Outside text as literal text within a line of Markdown. Links need no escapes: their URLs are made of checked IDs. */
export function escapeMarkdown(text: string): string {
  return lineText(text).replace(MARKUP, (character) => `\\${character}`);
}

/** An ID, a handle or a code, to be copied: in a code span, in which nothing is escaped. */
export function codeSpan(text: string): string {
  return `\`${lineText(text).replaceAll('`', '')}\``;
}

/** A paragraph ends after this time, or a little earlier with the end of a sentence. */
const PARAGRAPH_SECONDS = 60;
const SENTENCE_SECONDS = 45;

/**
 * The response as one Markdown document: the head of the list, a section for each video with a transcript, one line for each
 * without, and the counts.
 *
 * @param languages the languages that the caller asked for; of several, each gets a heading
 */
export async function* markdownDocument(
  events: AsyncIterable<TranscriptsEvent>,
  languages: readonly string[],
): AsyncGenerator<string, void, undefined> {
  // Of a heading for each language, below that of the video.
  const level = languages.length > 1 ? 3 : undefined;
  let separator = '';
  for await (const event of events) {
    if (event.type === 'videos') continue;
    yield separator;
    separator = '\n';
    if (event.type === 'summary') yield summaryLine(event.summary);
    else if (event.type !== 'result') yield listHead(event);
    else if (!event.entry.ok) yield failureLine(event.entry);
    else {
      const { videoId, transcript } = event.entry;
      yield videoHead(event.entry, 2);
      yield await joinInTurns(videoText(videoId, await readTranscript(await inflate(transcript)), level));
    }
  }
}

/** The head of a document about the videos of a channel or a playlist. */
export function listHead(header: Exclude<ListHeader, { type: 'videos' }>): string {
  if (header.type === 'playlist') {
    const { id, title } = header.playlist;
    return `# ${escapeMarkdown(title ?? '') || codeSpan(id)}\n\n<https://www.youtube.com/playlist?list=${id}>\n`;
  }
  const { id, name, handle } = header.channel;
  const link = `<https://www.youtube.com/channel/${id}>`;
  return `# ${escapeMarkdown(name) || codeSpan(id)}\n\n${handle === null ? '' : `${codeSpan(handle)} · `}${link}\n`;
}

/** The head of a section: title, link, date and length. */
export function videoHead({ videoId, metadata }: Pick<Entry, 'videoId' | 'metadata'>, level: 1 | 2): string {
  const { url, publishedAt, publishedText, durationSeconds } = metadata;
  const date = publishedAt?.slice(0, 'yyyy-mm-dd'.length) ?? publishedText;
  const details = [
    `<${url}>`,
    ...(date === null ? [] : [escapeMarkdown(date)]),
    ...(durationSeconds === null ? [] : [clockTime(durationSeconds)]),
  ];
  return `${'#'.repeat(level)} ${titleOf(videoId, metadata)}\n\n${details.join(' · ')}\n`;
}

/**
 * The text of a video in pieces: paragraphs of about a minute, each with a link to its second.
 *
 * @param languageLevel the level of a heading for each language; undefined for none
 * @param range what is said between two seconds; the end is null for the end of the video
 */
export function* videoText(
  videoId: string,
  transcript: Transcript,
  languageLevel?: 2 | 3,
  [from, to]: readonly [number, number | null] = [0, null],
): Generator<string, void, undefined> {
  for (const [language, segments] of transcript) {
    if (languageLevel !== undefined) yield `\n${'#'.repeat(languageLevel)} ${escapeMarkdown(language)}\n`;
    const wanted = segments.filter(
      ({ start, duration }) => (to === null || start < to) && (start >= from || start + duration > from),
    );
    yield* paragraphs(videoId, wanted);
  }
}

function* paragraphs(videoId: string, segments: readonly Segment[]): Generator<string, void, undefined> {
  let paragraphStart = Number.NEGATIVE_INFINITY;
  let last = '';
  for (const { text, start } of segments) {
    const line = lineText(text);
    if (line === '') {
      yield '';
      continue;
    }
    const seconds = start - paragraphStart;
    if (seconds >= PARAGRAPH_SECONDS || (seconds >= SENTENCE_SECONDS && SENTENCE_END.test(last))) {
      yield `${last === '' ? '' : '\n'}\n[${clockTime(start)}](${secondUrl(videoId, start)}) `;
      paragraphStart = start;
    } else yield spaceBetween(last, line);
    yield escapeMarkdown(line);
    last = line;
  }
  if (last !== '') yield '\n';
}

/** One line for a video without a transcript. */
export function failureLine({ videoId, metadata, error }: Extract<Entry, { ok: false }>): string {
  const link = `[${titleOf(videoId, metadata)}](${shortUrl(videoId)})`;
  return `- ${link}: no transcript. ${escapeMarkdown(error.message)} (${codeSpan(error.code)})\n`;
}

/** The last line of a document about several videos. Without it the document was cut off. */
export function summaryLine({ total, succeeded, failed }: Summary): string {
  return `---\n\n${total} ${total === 1 ? 'video' : 'videos'}: ${succeeded} with a transcript, ${failed} without.\n`;
}

/** The link to a second of a video. */
export function secondUrl(videoId: string, seconds: number): string {
  return `${shortUrl(videoId)}?t=${wholeSeconds(seconds)}`;
}

function shortUrl(videoId: string): string {
  return `https://youtu.be/${videoId}`;
}

function titleOf(videoId: string, { title }: VideoMetadata): string {
  return escapeMarkdown(title ?? '') || codeSpan(videoId);
}
