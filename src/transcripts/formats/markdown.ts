import { nextTurn } from '../../domain/waiting.js';
import type { Channel, Segment, Transcript } from '../../domain/transcript.js';
import { inflate, readTranscript } from '../cache/transcript-text.js';
import type { ListHeader } from '../sources/video-list.js';
import type { Summary, VideoMetadata } from '../dto/transcripts-response.dto.js';
import type { Entry, TranscriptsEvent } from '../delivery/transcript-events.js';
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

/** Markup at the start of a line: lists, headings, quotes and definitions. Other such markup is markup within a line too. */
const LINE_MARKUP = /^(?:(?=[-+>=:])|(\d+)(?=[.)]))/;

/** Outside text as a line of its own. */
function escapeLine(text: string): string {
  return escapeMarkdown(text).replace(LINE_MARKUP, '$1\\');
}

/** An ID, a handle or a code, to be copied: in a code span, in which nothing is escaped. */
export function codeSpan(text: string): string {
  return `\`${lineText(text).replaceAll('`', '')}\``;
}

/** A paragraph ends after this time, or a little earlier with the end of a sentence. */
const PARAGRAPH_SECONDS = 60;
const SENTENCE_SECONDS = 45;

/** How the caller asked for the texts. */
export interface TextForm {
  /** As `languageChoice` returns them. Of several languages each gets a heading. */
  languages: readonly string[];
  /** Of the chunks that the segments are joined to, each of which is a paragraph; without it a paragraph is about a minute. */
  chunkSeconds?: number | undefined;
}

/**
 * The response as one Markdown document: the head of the list, a section for each video with a transcript, one line for each
 * without, and the counts.
 */
export async function* markdownDocument(
  events: AsyncIterable<TranscriptsEvent>,
  { languages, chunkSeconds }: TextForm,
): AsyncGenerator<string, void, undefined> {
  let separator = '';
  for await (const event of events) {
    if (event.type === 'videos') continue;
    yield separator;
    separator = '\n';
    if (event.type === 'summary') yield summaryLine(event.summary);
    else if (event.type !== 'result') yield listHead(event);
    else if (!event.entry.ok) yield failureLine(event.entry);
    else {
      const transcript = await readTranscript(await inflate(event.entry.transcript));
      yield entrySection({ ...event.entry, transcript }, { languages, chunkSeconds });
    }
  }
}

/** The channel of an entry, in a document about several. */
export function channelLine({ id, name }: Channel): string {
  return `\nChannel: ${escapeMarkdown(name) || codeSpan(id)}\n`;
}

/** One entry: a section, or a line when it has no transcript. */
export async function entrySection(
  entry: Entry<Transcript>,
  { languages, chunkSeconds }: TextForm = { languages: [...(entry.ok ? entry.transcript.keys() : [])] },
  source = '',
): Promise<string> {
  if (!entry.ok) return failureLine(entry) + source;
  // Of a heading for each language, below that of the video.
  const form = { languageLevel: languages.length > 1 ? 3 : undefined, chunkSeconds } as const;
  return videoHead(entry, 2) + source + videoNotes(entry) + (await videoText(entry.videoId, entry.transcript, form));
}

/** The head of a document about the videos of a channel or a playlist. */
export function listHead(header: Exclude<ListHeader, { type: 'videos' }>): string {
  const age = header.listedAt === undefined ? '' : ` · as listed at ${header.listedAt}`;
  if (header.type === 'playlist') {
    const { id, title } = header.playlist;
    return `# ${escapeMarkdown(title ?? '') || codeSpan(id)}\n\n<https://www.youtube.com/playlist?list=${id}>${age}\n`;
  }
  const { id, name, handle } = header.channel;
  const link = `<https://www.youtube.com/channel/${id}>`;
  return `# ${escapeMarkdown(name) || codeSpan(id)}\n\n${handle === null ? '' : `${codeSpan(handle)} · `}${link}${age}\n`;
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

/** What the caller included in the metadata: tags, chapters and the description, as far as the video has them. */
export function videoNotes({ videoId, metadata }: Pick<Entry, 'videoId' | 'metadata'>): string {
  const { tags, chapters, description } = metadata;
  const chapterLines = chapters?.map(
    ({ title, start }) => `- [${clockTime(start)}](${secondUrl(videoId, start)}) ${escapeMarkdown(title)}\n`,
  );
  // The two spaces keep the line break.
  const lines = description
    ?.trim()
    .split(/\r\n|[\n\r]/)
    .map((line) => `> ${escapeLine(line)}`.trimEnd() + '  \n');
  return [
    tags && tags.length > 0 ? [`Tags: ${tags.map(escapeMarkdown).join(', ')}\n`] : [],
    chapterLines && chapterLines.length > 0 ? [`Chapters:\n\n${chapterLines.join('')}`] : [],
    lines ? [`Description:\n\n${lines.join('')}`] : [],
  ]
    .flat()
    .map((note) => `\n${note}`)
    .join('');
}

interface VideoTextForm extends Pick<TextForm, 'chunkSeconds'> {
  /** The level of a heading for each language; undefined for none. */
  languageLevel?: 2 | 3 | undefined;
}

/** The text of a video: the paragraphs of each language. */
export async function videoText(
  videoId: string,
  transcript: Transcript,
  { languageLevel, chunkSeconds }: VideoTextForm = {},
): Promise<string> {
  let text = '';
  for (const [language, segments] of transcript) {
    await nextTurn();
    if (languageLevel !== undefined) text += `\n${'#'.repeat(languageLevel)} ${escapeMarkdown(language)}\n`;
    text += paragraphs(videoId, segments, chunkSeconds !== undefined);
  }
  return text;
}

/** A part of a text, from a second of the video on. */
interface Paragraph {
  start: number;
  text: string;
}

/** The paragraphs of a text, each on one line. @param areParagraphs whether each segment is one */
export function* paragraphsOf(segments: readonly Segment[], areParagraphs = false): Generator<Paragraph> {
  let paragraph: Paragraph | undefined;
  let last = '';
  for (const { text, start } of segments) {
    const line = lineText(text);
    if (line === '') continue;
    const seconds = start - (paragraph?.start ?? Number.NEGATIVE_INFINITY);
    const isNext = areParagraphs || seconds >= PARAGRAPH_SECONDS;
    if (!paragraph || isNext || (seconds >= SENTENCE_SECONDS && SENTENCE_END.test(last))) {
      if (paragraph) yield paragraph;
      paragraph = { start, text: line };
    } else paragraph.text += spaceBetween(last, line) + line;
    last = line;
  }
  if (paragraph) yield paragraph;
}

/** Paragraphs, each with a link to its second. @param areParagraphs whether each segment is one */
export function paragraphs(videoId: string, segments: readonly Segment[], areParagraphs = false): string {
  let markdown = '';
  for (const { start, text } of paragraphsOf(segments, areParagraphs))
    markdown += `\n[${clockTime(start)}](${secondUrl(videoId, start)}) ${escapeMarkdown(text)}\n`;
  return markdown;
}

export function failureLine({ videoId, metadata, error }: Extract<Entry, { ok: false }>): string {
  const link = `[${titleOf(videoId, metadata)}](${shortUrl(videoId)})`;
  return `- ${link}: no transcript. ${escapeMarkdown(error.message)} (${codeSpan(error.code)})\n`;
}

/** The last line of a document about several videos. Without it the document was cut off. */
export function summaryLine({ total, succeeded, failed, sinceFound }: Summary): string {
  const missed = sinceFound === false ? `\n${SINCE_MISSED}\n` : '';
  const videos = total === 1 ? 'video' : 'videos';
  return `---\n\n${total} ${videos}: ${succeeded} with a transcript, ${failed} without.\n${missed}`;
}

const SINCE_MISSED = 'The video of `since` is not among the newest uploads: these are all of them up to the limit.';

export function secondUrl(videoId: string, seconds: number): string {
  return `${shortUrl(videoId)}?t=${wholeSeconds(seconds)}`;
}

function shortUrl(videoId: string): string {
  return `https://youtu.be/${videoId}`;
}

function titleOf(videoId: string, { title }: VideoMetadata): string {
  return escapeMarkdown(title ?? '') || codeSpan(videoId);
}
