import { nextTurn } from '../../domain/waiting.js';
import type { Segment, Transcript } from '../../domain/transcript.js';
import { inflate, readTranscript } from '../cache/transcript-text.js';
import type { VideoMetadata } from '../dto/transcripts-response.dto.js';
import type { SucceededEntry } from '../delivery/transcript-events.js';
import { lineText } from './line-text.js';
import { videoHead, videoNotes, videoText, type TextForm } from './markdown.js';
import { srt, webVtt } from './subtitles.js';

/** The media type of each form of a transcript other than JSON. */
export const FORMAT_MEDIA_TYPES = {
  text: 'text/plain',
  srt: 'application/x-subrip',
  vtt: 'text/vtt',
  markdown: 'text/markdown',
} as const;

export type TranscriptFormat = keyof typeof FORMAT_MEDIA_TYPES;

/**
 * Writes the transcript of one video in a format. Of several languages, text and subtitles have the first; Markdown has all.
 */
export async function formatTranscript(
  format: TranscriptFormat,
  { transcript, ...video }: { videoId: string; metadata: VideoMetadata; transcript: Transcript },
  { languages, chunkSeconds }: TextForm = { languages: [] },
): Promise<string> {
  await nextTurn();
  const [segments = []] = transcript.values();
  switch (format) {
    case 'text':
      return plainLines(segments);
    case 'srt':
      return srt(segments);
    case 'vtt':
      return webVtt(segments);
    case 'markdown':
      return `${videoHead(video, 1)}${videoNotes(video)}${await videoText(video.videoId, transcript, {
        languageLevel: languages.length > 1 ? 2 : undefined,
        chunkSeconds,
      })}`;
  }
}

/** Writes the transcript of an entry in a format. */
export async function formatEntry(
  format: TranscriptFormat,
  { videoId, metadata, transcript }: SucceededEntry,
  form: TextForm,
): Promise<string> {
  const read = await readTranscript(await inflate(transcript));
  return formatTranscript(format, { videoId, metadata, transcript: read }, form);
}

function plainLines(segments: readonly Segment[]): string {
  const lines = segments.map(({ text }) => lineText(text)).filter((line) => line !== '');
  return lines.map((line) => `${line}\n`).join('');
}
