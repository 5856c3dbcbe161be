import { expect, it } from '@jest/globals';
import { jsonOfText, storedText } from '../../../test/texts/stored-text.js';
import { inflate, readTranscript } from '../cache/transcript-text.js';
import type { Entry } from '../delivery/transcript-events.js';
import { entryJson, readEntry } from './json.js';

const metadata = {
  ...{ title: 'A "title","transcript":{', url: 'https://www.youtube.com/watch?v=abcdefghijk' },
  ...{ publishedAt: null, publishedText: null, durationSeconds: 60, viewCount: null, thumbnailUrl: null },
  ...{ kind: null, captionTracks: [{ languageCode: 'en', name: 'English', generated: true }] },
};
const included = {
  ...{ channel: { id: 'UC1', name: 'A channel' }, description: '0:00 A,"cached":\n', tags: ['boats'] },
  chapters: [{ title: 'A', start: 0 }],
};
const transcript = storedText('{"en":[{"text":"a,\\"cached\\":","start":0,"duration":2}]}');
const error = { code: 'video_private' as const, message: 'Private,"cached":', retryable: false };

function jsonOf(entry: Entry, position?: number): Buffer {
  const parts = entryJson('', entry, '', position);
  return Buffer.from(parts.map((part) => (typeof part === 'string' ? part : jsonOfText(part))).join(''));
}

it.each<Entry>([
  {
    videoId: 'abcdefghijk',
    ok: true,
    metadata: { ...metadata, ...included },
    transcript,
    cached: true,
    tracks: { en: { name: 'English', generated: true } },
  },
  { videoId: 'abcdefghijk', ok: true, metadata, transcript, cached: false, tracks: {} },
  { videoId: 'abcdefghijk', ok: false, metadata: { ...metadata, ...included, description: null }, error },
])('an entry is read as it was written: %#', async (entry) => {
  const read = entry.ok ? { ...entry, transcript: await readTranscript(await inflate(entry.transcript)) } : entry;
  expect(await readEntry(jsonOf(entry))).toEqual(read);
  expect(await readEntry(jsonOf(entry, 7))).toEqual(read);
});
