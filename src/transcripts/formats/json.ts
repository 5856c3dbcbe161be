import type { Transcript } from '../../domain/transcript.js';
import { fromJson } from '../cache/keyed-codec.js';
import { readTranscript, type TranscriptText } from '../cache/transcript-text.js';
import { EntryDto } from '../dto/transcripts-response.dto.js';
import type { ListHeader } from '../sources/video-list.js';
import type { Entry, TranscriptsEvent } from '../delivery/transcript-events.js';

/** One step of a response: JSON and the texts within it. */
export type Chunk = readonly (string | TranscriptText)[];

/** Events, or batches of those that are written together. */
type Events = AsyncIterable<TranscriptsEvent | readonly TranscriptsEvent[]>;

/** The response as one JSON document, in chunks; the texts of transcripts pass through unchanged. */
export async function* serializeJson(events: Events): AsyncGenerator<Chunk> {
  let separator = '';
  for await (const batch of events)
    yield [batch].flat().flatMap((event) => {
      if (event.type === 'summary') return [`],"summary":${JSON.stringify(event.summary)}}`];
      if (event.type !== 'result') return [`{${headerField(event)}"results":[`];
      const entry = entryJson(separator, event.entry, '');
      separator = ',';
      return entry;
    });
}

/** The fields of the header, each with the comma after it. */
function headerField({ type, ...fields }: ListHeader): string {
  return type === 'videos' ? '' : `${JSON.stringify(fields).slice(1, -1)},`;
}

/** The response as NDJSON, one line per event, for clients that show progress. */
export async function* serializeNdjson(events: Events): AsyncGenerator<Chunk> {
  for await (const batch of events) {
    const chunk = [batch].flat().flatMap((event) => {
      if (event.type === 'result') return entryJson('{"type":"result","result":', event.entry, '}\n');
      // The caller named the videos, so that there is nothing to name.
      return event.type === 'videos' ? [] : [`${JSON.stringify(event)}\n`];
    });
    if (chunk.length > 0) yield chunk;
  }
}

/** The JSON of one entry, between two texts. @param position of a result of a job: the place of the video in its list */
export function entryJson(before: string, entry: Entry, after: string, position?: number): Chunk {
  const place = position === undefined ? '' : `"position":${position},`;
  const head = `${before}{${place}"videoId":${JSON.stringify(entry.videoId)},"ok":${entry.ok},"metadata":${JSON.stringify(entry.metadata)},"transcript":`;
  return entry.ok
    ? [head, entry.transcript, `,"cached":${entry.cached},"tracks":${JSON.stringify(entry.tracks)}}${after}`]
    : [`${head}{},"cached":false,"error":${JSON.stringify(entry.error)},"tracks":{}}${after}`];
}

const TRANSCRIPT_FIELD = ',"transcript":';
const CACHED_FIELD = ',"cached":';

/** One that was stored by version 1.0 has no tracks. */
const StoredEntry = EntryDto.omit({ transcript: true }).extend({ tracks: EntryDto.shape.tracks.default({}) });

/** Reads an entry from the JSON of `entryJson`. @throws Error when it is none */
export async function readEntry(json: Buffer): Promise<Entry<Transcript>> {
  // Within a string the quotes of a field are escaped. The text is long, and is read in parts.
  const [start, end] = [json.indexOf(TRANSCRIPT_FIELD), json.lastIndexOf(CACHED_FIELD)];
  const stored = fromJson(Buffer.concat([json.subarray(0, start), json.subarray(end)]), StoredEntry);
  if (!stored) throw new Error('A stored entry is not readable.');
  const { videoId, metadata, cached, error, tracks } = stored;
  if (error) return { videoId, ok: false, metadata, error };
  const transcript = await readTranscript(json.subarray(start + TRANSCRIPT_FIELD.length, end));
  return { videoId, ok: true, metadata, transcript, cached, tracks };
}
