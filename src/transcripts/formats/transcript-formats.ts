import type { Segment, Transcript } from '../../domain/transcript.js';
import { joinInTurns } from '../in-turns.js';
import { inflate, readTranscript } from '../cache/transcript-text.js';
import type { VideoMetadata } from '../dto/transcripts-response.dto.js';
import type { SucceededEntry } from '../transcript-events.js';
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
 * Writes the transcript of one video in a format, in pieces. Of several languages, text and subtitles have the first; Markdown has all.
 */
export function* formatTranscript(
  format: TranscriptFormat,
  { transcript, ...video }: { videoId: string; metadata: VideoMetadata; transcript: Transcript },
  { languages, chunkSeconds }: TextForm = { languages: [] },
): Generator<string, void, undefined> {
  const [segments = []] = transcript.values();
  switch (format) {
    case 'text':
      return yield* plainLines(segments);
    case 'srt':
      return yield* srt(segments);
    case 'vtt':
      return yield* webVtt(segments);
    case 'markdown':
      yield videoHead(video, 1) + videoNotes(video);
      yield* videoText(video.videoId, transcript, {
        languageLevel: languages.length > 1 ? 2 : undefined,
        chunkSeconds,
      });
  }
}

/** Writes the transcript of an entry in a format. */
export async function formatEntry(
  format: TranscriptFormat,
  { videoId, metadata, transcript }: SucceededEntry,
  form: TextForm,
): Promise<string> {
  const read = await readTranscript(await inflate(transcript));
  return joinInTurns(formatTranscript(format, { videoId, metadata, transcript: read }, form));
}

/** One line for each segment. */
function* plainLines(segments: readonly Segment[]): Generator<string, void, undefined> {
  for (const { text } of segments) {
    const line = lineText(text);
    yield line === '' ? '' : `${line}\n`;
  }
}
