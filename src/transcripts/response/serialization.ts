import type { Entry, TranscriptsEvent, VideoMetadata } from '../transcript-events.js';
import type { SentText } from '../cache/transcript-text.js';

/** What is written at a time: JSON, and the ready-made texts in it. */
export type Chunk = readonly (string | SentText)[];

/** The answer as JSON, in pieces that follow one another; the text of a transcript passes through as it is. */
export async function* serializeJson(events: AsyncIterable<TranscriptsEvent>): AsyncGenerator<Chunk> {
  let separator = '';
  for await (const event of events) {
    switch (event.type) {
      case 'channel':
        yield [`{"channel":${JSON.stringify(event.channel)},"results":[`];
        break;
      case 'result':
        yield entryJson(separator, event.entry, '');
        separator = ',';
        break;
      case 'summary':
        yield [`],"summary":${JSON.stringify(event.summary)}}`];
        break;
    }
  }
}

/** The answer as lines of JSON, one an event, for a reader who shows progress. */
export async function* serializeNdjson(events: AsyncIterable<TranscriptsEvent>): AsyncGenerator<Chunk> {
  for await (const event of events) {
    switch (event.type) {
      case 'channel':
        yield [`{"type":"channel","channel":${JSON.stringify(event.channel)}}\n`];
        break;
      case 'result':
        yield entryJson('{"type":"result","result":', event.entry, '}\n');
        break;
      case 'summary':
        yield [`{"type":"summary","summary":${JSON.stringify(event.summary)}}\n`];
        break;
    }
  }
}

function entryJson(before: string, entry: Entry, after: string): Chunk {
  const head = `${before}{"videoId":${JSON.stringify(entry.videoId)},"ok":${entry.ok},"metadata":${metadataJson(entry.metadata)},"transcript":`;
  return entry.ok
    ? [head, entry.transcript, `,"cached":${entry.cached}}${after}`]
    : [`${head}{},"cached":false,"error":${JSON.stringify(entry.error)}}${after}`];
}

/** Answers from the cache show the same metadata again. */
const written = new WeakMap<VideoMetadata, string>();

function metadataJson(metadata: VideoMetadata): string {
  let json = written.get(metadata);
  if (json === undefined) written.set(metadata, (json = JSON.stringify(metadata)));
  return json;
}
