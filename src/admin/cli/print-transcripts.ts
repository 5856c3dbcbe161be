import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parsePlaylistReference } from '../../domain/playlist-reference.js';
import { parseVideoReference } from '../../domain/video-reference.js';
import { readInput } from '../../http/routes/validation.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import type { TranscriptsRequest } from '../../transcripts/call-plan.js';
import { entryJson, serializeJson, type Chunk } from '../../transcripts/formats/json.js';
import { markdownDocument, type TextForm } from '../../transcripts/formats/markdown.js';
import { formatEntry } from '../../transcripts/formats/transcript-formats.js';
import { PlaylistQueryDto } from '../../transcripts/dto/transcripts-query.dto.js';
import { onlyEntry, type EntryFormat } from '../../transcripts/response/transcripts-response.js';
import type { Selection } from '../../transcripts/sources/selection.js';
import { givenVideos, type VideoSource } from '../../transcripts/sources/video-list.js';
import type { TranscriptsEvent } from '../../transcripts/transcript-events.js';
import type { CommandServices } from './command-services.js';

const { limit: LIMIT_DEFAULT } = readInput(PlaylistQueryDto, {}, 'text');

/** A `limit` above the maximum of a call counts as that. */
export interface PrintOptions extends Partial<Omit<Selection, 'since'>>, Omit<TranscriptsRequest, 'source'> {
  format: EntryFormat;
}

/**
 * Prints what the service would respond to standard output.
 *
 * @throws Error for an option of the other when the reference is a list or a video, and the errors that refuse the call
 */
export async function printTranscripts(
  reference: string,
  { limit, kinds, format, ...texts }: PrintOptions,
  services: CommandServices,
): Promise<void> {
  const videoId = videoIdOf(reference);
  if (videoId === undefined && format !== 'json' && format !== 'markdown')
    throw new Error(`${format} is a format of one video. Use the URL of a video, or --format markdown.`);
  if (videoId !== undefined && (limit ?? kinds) !== undefined)
    throw new Error('--limit and --kinds are for a channel or a playlist. Omit them for a video.');
  const { transcripts } = services;
  const selection = { limit: limit ?? LIMIT_DEFAULT, kinds };
  const source = videoId === undefined ? sourceOf(reference, selection, services) : givenVideos([videoId], videoId);
  const end = new AbortController();
  const times = { startedAtMs: performance.now(), responseEnd: end.signal };
  const plan = await transcripts.prepare({ source, ...texts }, await services.payer(), times);
  const events = transcripts.deliver(plan).events('listed');
  try {
    await writeOut(videoId === undefined ? list(format, events, plan) : entry(format, events, plan));
    if (format === 'json') process.stdout.write('\n');
  } finally {
    // The fetching does not wait for the reader: when the reader stops early, nothing else would end it.
    end.abort();
    await events.return();
  }
}

/** A text without a slash can be a handle as well as the ID of a video. As over HTTP a handle needs no `@`. */
function videoIdOf(reference: string): string | undefined {
  return reference.includes('/') ? parseVideoReference(reference) : undefined;
}

function sourceOf(reference: string, selection: Selection, { uploads, playlists }: CommandServices): VideoSource {
  return parsePlaylistReference(reference)
    ? playlists.source(reference, selection)
    : uploads.source(reference, selection);
}

type Events = AsyncGenerator<TranscriptsEvent, void>;

async function* list(format: EntryFormat, events: Events, form: TextForm): AsyncGenerator<Chunk> {
  if (format === 'json') yield* serializeJson(events);
  else for await (const text of markdownDocument(events, form)) yield [text];
}

async function* entry(format: EntryFormat, events: Events, form: TextForm): AsyncGenerator<Chunk> {
  const only = await onlyEntry(events);
  yield format === 'json' ? entryJson('', only, '') : [await formatEntry(format, only, form)];
}

/** Writes to standard output no faster than it is read. A reader that stops early, such as `head`, is no error. */
async function writeOut(chunks: AsyncIterable<Chunk>): Promise<void> {
  const pieces = async function* () {
    for await (const chunk of chunks)
      for (const part of chunk) yield typeof part === 'string' ? part : await inflate(part);
  };
  try {
    await pipeline(Readable.from(pieces()), process.stdout, { end: false });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error;
  }
}
