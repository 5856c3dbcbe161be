import type { Segment } from '../../domain/transcript.js';
import type { ListHeader } from '../sources/video-list.js';
import type { Entry, Summary, VideoMetadata } from '../transcript-events.js';
import { clockTime, lineText, spaceBetween, wholeSeconds } from './line-text.js';
import { storedParts } from '../cache/transcript-text.js';

/**
 * Characters that CommonMark, GitHub's and Obsidian's Markdown can read as markup within a line: emphasis, code, links, HTML,
 * entities, tables, tags, mentions, formulas, and bare URLs. Markup at the start of a line is not among them, because no
 * line of our documents starts with outside text.
 */
const MARKUP = /[\\`*_[\]<~$#|@]|&(?=#?[0-9a-z]+;)|:(?=\/\/)|(?<=www)\.|[=%](?=[=%])/gi;

/** Outside text as literal text within a line of Markdown. */
export function escapeMarkdown(text: string): string {
  return lineText(text).replace(MARKUP, (character) => `\\${character}`);
}

const OUTSIDE_URLS = /[^\w\-.~:/?#@!$&+,;=%]+/g;
const NOT_ENCODED = /['()*]/g;

/** The destination of a link or an autolink: characters that would end it, or that no URL contains, are percent-encoded. */
export function linkDestination(url: string): string {
  return lineText(url).replace(OUTSIDE_URLS, (run) =>
    encodeURIComponent(run).replace(
      NOT_ENCODED,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    ),
  );
}

/** A paragraph ends after this time, or a little earlier with the end of a sentence. */
const PARAGRAPH_SECONDS = 60;
const SENTENCE_SECONDS = 45;
const SENTENCE_END = /[.!?…。！？؟]["'”’)»」』]?$/u;

/** A video whose transcript is written as Markdown. */
export interface MarkdownVideo {
  videoId: string;
  metadata: VideoMetadata;
  /** The stored JSON. */
  transcript: Buffer;
}

/** The head of a document about the videos of a channel or a playlist. */
export function listHead(header: Exclude<ListHeader, { type: 'videos' }>): string {
  if (header.type === 'playlist') {
    const { id, title } = header.playlist;
    return `# ${escapeMarkdown(title ?? '') || escapeMarkdown(id)}\n\n${autolink(`https://www.youtube.com/playlist?list=${id}`)}\n`;
  }
  const { id, name, handle } = header.channel;
  const link = autolink(`https://www.youtube.com/channel/${id}`);
  return `# ${escapeMarkdown(name) || escapeMarkdown(id)}\n\n${handle === null ? '' : `${escapeMarkdown(handle)} · `}${link}\n`;
}

/** The head of a section: title, link, date and length. */
export function videoHead({ videoId, metadata }: Pick<MarkdownVideo, 'videoId' | 'metadata'>, level: 1 | 2): string {
  const { url, publishedAt, publishedText, durationSeconds } = metadata;
  const date = publishedAt?.slice(0, 'yyyy-mm-dd'.length) ?? publishedText;
  const details = [
    autolink(url),
    ...(date === null ? [] : [escapeMarkdown(date)]),
    ...(durationSeconds === null ? [] : [clockTime(durationSeconds)]),
  ];
  return `${'#'.repeat(level)} ${titleOf(videoId, metadata)}\n\n${details.join(' · ')}\n`;
}

/**
 * The text of a video: paragraphs of about a minute, each with a link to its second.
 *
 * @param languageLevel the level of a heading for each language; undefined for none
 * @param range what is said between two seconds; the end is null for the end of the video
 * @returns pieces; an empty one after each part of the stored text that was parsed, so that the reader can let other work run
 */
export function* videoText(
  { videoId, transcript }: Pick<MarkdownVideo, 'videoId' | 'transcript'>,
  languageLevel?: 2 | 3,
  [from, to]: readonly [number, number | null] = [0, null],
): Generator<string> {
  let current: { language: string; paragraph: Paragraph } | undefined;
  for (const { language, segments } of storedParts(transcript)) {
    if (current?.language !== language) {
      if (current) yield current.paragraph.end();
      if (languageLevel !== undefined) yield `\n${'#'.repeat(languageLevel)} ${escapeMarkdown(language)}\n`;
      current = { language, paragraph: new Paragraph(videoId) };
    }
    for (const segment of segments) {
      // In order of their start, so that no later one is wanted.
      if (to !== null && segment.start >= to) break;
      if (segment.start >= from || segment.start + segment.duration > from) yield current.paragraph.add(segment);
    }
    yield '';
  }
  if (current) yield current.paragraph.end();
}

/** One line for a video without a transcript. */
export function failureLine({ videoId, metadata, error }: Extract<Entry, { ok: false }>): string {
  const link = `[${titleOf(videoId, metadata)}](${shortUrl(videoId)})`;
  return `- ${link}: no transcript. ${escapeMarkdown(error.message)} (\`${error.code}\`)\n`;
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
  return linkDestination(`https://youtu.be/${videoId}`);
}

function autolink(url: string): string {
  return `<${linkDestination(url)}>`;
}

function titleOf(videoId: string, { title }: VideoMetadata): string {
  return escapeMarkdown(title ?? '') || escapeMarkdown(videoId);
}

/** Joins segments into paragraphs, written piece by piece. */
class Paragraph {
  private startSeconds: number | undefined;
  private last = '';

  constructor(private readonly videoId: string) {}

  add({ text, start }: Segment): string {
    const line = lineText(text);
    if (line === '') return '';
    const ended = this.endsBefore(start) ? this.end() : '';
    const before = this.startSeconds === undefined ? this.begin(start) : spaceBetween(this.last, line);
    this.last = line;
    return `${ended}${before}${escapeMarkdown(line)}`;
  }

  end(): string {
    const begun = this.startSeconds !== undefined;
    this.startSeconds = undefined;
    return begun ? '\n' : '';
  }

  private begin(start: number): string {
    this.startSeconds = start;
    return `\n[${clockTime(start)}](${secondUrl(this.videoId, start)}) `;
  }

  private endsBefore(start: number): boolean {
    if (this.startSeconds === undefined) return false;
    const seconds = start - this.startSeconds;
    return seconds >= PARAGRAPH_SECONDS || (seconds >= SENTENCE_SECONDS && SENTENCE_END.test(this.last));
  }
}
