import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { VIDEOS_PER_CALL_MAX } from '../../domain/plan.js';
import { parsePlaylistReference } from '../../domain/playlist-reference.js';
import { parseVideoReference } from '../../domain/video-reference.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import { LANGUAGES_INVALID, parseLanguages } from '../../transcripts/dto/transcripts-query.dto.js';
import { markdownDocument } from '../../transcripts/formats/markdown.js';
import { formatEntry } from '../../transcripts/formats/transcript-formats.js';
import type { Payer } from '../../quota/quota.service.js';
import { entryJson, serializeJson, type Chunk } from '../../transcripts/response/response-writer.js';
import { onlyEntry, type EntryFormat } from '../../transcripts/response/transcripts-response.js';
import type { ChannelUploads } from '../../transcripts/sources/channel-uploads.js';
import type { PlaylistSource } from '../../transcripts/sources/playlist-source.js';
import { givenVideos, type VideoSource } from '../../transcripts/sources/video-list.js';
import type { TranscriptsEvent } from '../../transcripts/transcript-events.js';
import type { TranscriptsService } from '../../transcripts/transcripts.service.js';

/** The services that the command uses. */
export interface PrintServices {
  payer: Payer;
  uploads: ChannelUploads;
  playlists: PlaylistSource;
  transcripts: TranscriptsService;
}

export interface PrintOptions {
  /** Values above the maximum of a call count as that. */
  limit: number;
  /** As in the query: separated by commas. */
  languages?: string;
  format: EntryFormat;
}

/**
 * Prints what the service would respond to standard output.
 *
 * @throws Error when an option is invalid, and the errors that refuse the call
 */
export async function printTranscripts(
  reference: string,
  { limit, languages: codes, format }: PrintOptions,
  services: PrintServices,
): Promise<void> {
  const languages = requestedLanguages(codes);
  const videoId = videoIdOf(reference);
  if (videoId === undefined && format !== 'json' && format !== 'markdown')
    throw new Error(`${format} is a format of one video. Use the URL of a video, or --format markdown.`);
  const { transcripts, payer } = services;
  const source = videoId === undefined ? listOf(reference, limit, services) : givenVideos([videoId], videoId);
  const end = new AbortController();
  const times = { startedAtMs: performance.now(), responseEnd: end.signal };
  const plan = await transcripts.prepare({ source, languages }, payer, times);
  const events = transcripts.deliver(plan).events('listed');
  try {
    await writeOut(videoId === undefined ? list(format, events, languages) : entry(format, events, languages));
    if (format === 'json') process.stdout.write('\n');
  } finally {
    // The fetching does not wait for the reader: when the reader stops early, nothing else would end it.
    end.abort();
    await events.return();
  }
}

/**
 * @param codes as in the query: separated by commas
 * @throws Error when they are malformed
 */
export function requestedLanguages(codes: string | undefined): string[] {
  const languages = codes === undefined ? [] : parseLanguages(codes);
  if (!languages) throw new Error(LANGUAGES_INVALID);
  return languages;
}

/** A text without a slash can be a handle as well as the ID of a video. As over HTTP a handle needs no `@`. */
function videoIdOf(reference: string): string | undefined {
  return reference.includes('/') ? parseVideoReference(reference) : undefined;
}

function listOf(reference: string, wanted: number, { uploads, playlists }: PrintServices): VideoSource {
  const limit = Math.min(wanted, VIDEOS_PER_CALL_MAX);
  return parsePlaylistReference(reference) ? playlists.source(reference, limit) : uploads.source(reference, { limit });
}

type Events = AsyncGenerator<TranscriptsEvent, void>;

async function* list(format: EntryFormat, events: Events, languages: readonly string[]): AsyncGenerator<Chunk> {
  if (format === 'json') yield* serializeJson(events);
  else for await (const text of markdownDocument(events, languages)) yield [text];
}

async function* entry(format: EntryFormat, events: Events, languages: readonly string[]): AsyncGenerator<Chunk> {
  const only = await onlyEntry(events);
  yield format === 'json' ? entryJson('', only, '') : [await formatEntry(format, only, languages)];
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
