import { describe, expect, it } from '@jest/globals';
import { formatTranscript, type TranscriptFormat } from './transcript-formats.js';

const metadata = {
  title: 'The dinghy',
  url: 'https://www.youtube.com/watch?v=hl-dinghy__',
  publishedAt: null,
  publishedText: null,
  durationSeconds: null,
  viewCount: null,
  thumbnailUrl: null,
  kind: null,
  captionTracks: null,
};

const transcript = new Map([
  ['de', [{ text: 'Guten\r\nTag', start: 0, duration: 1 }]],
  ['en', [{ text: 'Hello', start: 0, duration: 1 }]],
]);

const written = (format: TranscriptFormat, languages: string[] = []): Promise<string> =>
  formatTranscript(format, { videoId: 'hl-dinghy__', metadata, transcript }, { languages });

describe('a formatted transcript', () => {
  it('has the first language only as text and subtitles', async () => {
    expect(await written('text')).toBe('Guten Tag\n');
    expect(await written('srt')).toBe('1\n00:00:00,000 --> 00:00:01,000\nGuten Tag\n');
    expect(await written('vtt')).toBe('WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nGuten Tag\n');
  });

  it('has all requested languages as Markdown', async () => {
    expect(await written('markdown', ['de', 'en'])).toBe(
      '# The dinghy\n\n<https://www.youtube.com/watch?v=hl-dinghy__>\n' +
        '\n## de\n\n[0:00](https://youtu.be/hl-dinghy__?t=0) Guten Tag\n' +
        '\n## en\n\n[0:00](https://youtu.be/hl-dinghy__?t=0) Hello\n',
    );
  });
});
