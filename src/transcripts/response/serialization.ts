import type { Entry, TranscriptsEvent, VideoMetadata } from '../transcript-events.js';
import type { SentText } from '../cache/transcript-text.js';

/** One step of a response: JSON and the serialized texts within it. */
export type Chunk = readonly (string | SentText)[];

/** The response as one JSON document, in chunks; the texts of transcripts pass through unchanged. */
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

/** The response as NDJSON, one line per event, for clients that show progress. */
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

/** Cached, because cached transcripts are sent with the same metadata again. */
const serialized = new WeakMap<VideoMetadata, string>();

function metadataJson(metadata: VideoMetadata): string {
  let json = serialized.get(metadata);
  if (json === undefined) serialized.set(metadata, (json = JSON.stringify(metadata)));
  return json;
}
