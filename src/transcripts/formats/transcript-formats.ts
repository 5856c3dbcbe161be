import { setImmediate as nextTurn } from 'node:timers/promises';
import { lineText } from './line-text.js';
import { videoHead, videoText, type MarkdownVideo } from './markdown.js';
import { firstLanguage } from '../cache/transcript-text.js';
import { srt, webVtt } from './subtitles.js';

/** The media type of each form of a transcript other than JSON. */
export const FORMAT_MEDIA_TYPES = {
  text: 'text/plain',
  srt: 'application/x-subrip',
  vtt: 'text/vtt',
  markdown: 'text/markdown',
} as const;

export type TranscriptFormat = keyof typeof FORMAT_MEDIA_TYPES;

/** Characters after which other work gets its turn. */
const PIECE_CHARACTERS = 64 * 1024;

/**
 * Writes the transcript of one video in a format, in pieces, and lets other work run between them. Of several languages,
 * text and subtitles have the first; Markdown has all.
 *
 * @param languages the languages that the caller asked for
 */
export function formatTranscript(
  format: TranscriptFormat,
  video: MarkdownVideo,
  languages: readonly string[] = [],
): AsyncGenerator<string> {
  return inTurns(piecesOf(format, video, languages));
}

/**
 * Joins small pieces of text into larger ones, with a turn of the event loop after each, and after each empty piece: work
 * was done that wrote nothing.
 */
export async function* inTurns(pieces: Iterable<string>): AsyncGenerator<string> {
  let text = '';
  for (const piece of pieces) {
    text += piece;
    if (text.length >= PIECE_CHARACTERS) {
      yield text;
      text = '';
    } else if (piece !== '') continue;
    await nextTurn();
  }
  if (text !== '') yield text;
}

function piecesOf(format: TranscriptFormat, video: MarkdownVideo, languages: readonly string[]): Iterable<string> {
  switch (format) {
    case 'text':
      return lines(video.transcript);
    case 'srt':
      return srt(firstLanguage(video.transcript));
    case 'vtt':
      return webVtt(firstLanguage(video.transcript));
    case 'markdown':
      return document(video, languages);
  }
}

/** Plain text: one line for each segment. */
function* lines(transcript: Buffer): Generator<string> {
  for (const { text } of firstLanguage(transcript)) {
    const line = lineText(text);
    if (line !== '') yield `${line}\n`;
  }
}

function* document(video: MarkdownVideo, languages: readonly string[]): Generator<string> {
  yield videoHead(video, 1);
  yield* videoText(video, languages.length > 1 ? 2 : undefined);
}
