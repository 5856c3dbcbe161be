import { deflate, inflate } from '../cache/transcript-text.js';
import type { Chunk } from '../response/response-writer.js';
import type { TranscriptsEvent } from '../transcript-events.js';
import { failureLine, listHead, summaryLine, videoHead, videoText } from './markdown.js';
import { inTurns } from './transcript-formats.js';

/** Below this a deflated block saves less than it costs. */
const COMPRESSED_CHARACTERS_MIN = 256;
/** The level of a heading for each language of a video, below the video's own. */
const LANGUAGE_LEVEL = 3;

/**
 * The response as one Markdown document: the head of the list, a section for each video with a transcript, one line for each
 * without, and the counts. Texts are parsed one at a time.
 *
 * @param languages the languages that the caller asked for; of several, each gets a heading
 */
export async function* markdownDocument(
  events: AsyncIterable<TranscriptsEvent>,
  languages: readonly string[],
): AsyncGenerator<string> {
  let separator = '';
  for await (const event of events) {
    if (event.type === 'videos') continue;
    yield separator;
    separator = '\n';
    switch (event.type) {
      case 'channel':
      case 'playlist':
        yield listHead(event);
        break;
      case 'result': {
        const { entry } = event;
        if (!entry.ok) {
          yield failureLine(entry);
          break;
        }
        const { videoId, metadata, transcript } = entry;
        yield videoHead({ videoId, metadata }, 2);
        const level = languages.length > 1 ? LANGUAGE_LEVEL : undefined;
        yield* inTurns(videoText({ videoId, transcript: await inflate(transcript) }, level));
        break;
      }
      case 'summary':
        yield summaryLine(event.summary);
        break;
    }
  }
}

/** The pieces of a text as they are written. Short ones are not compressed. */
export async function* textChunks(pieces: AsyncIterable<string>, encoding: 'gzip' | 'identity'): AsyncGenerator<Chunk> {
  for await (const piece of pieces) {
    if (encoding === 'identity' || piece.length < COMPRESSED_CHARACTERS_MIN) yield [piece];
    else yield [await deflate(Buffer.from(piece))];
  }
}
