import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LANGUAGES_INVALID, parseLanguages } from '../../transcripts/dto/transcripts-query.dto.js';
import { parsePlaylistReference } from '../../domain/playlist-reference.js';
import { parseVideoReference } from '../../domain/video-reference.js';
import type { Payer } from '../../transcripts/quota-reservations.js';
import { markdownDocument } from '../../transcripts/formats/markdown.js';
import { formatEntry, type TranscriptFormat } from '../../transcripts/formats/transcript-formats.js';
import { entryJson, serializeJson, type Chunk } from '../../transcripts/response/response-writer.js';
import { inflate } from '../../transcripts/cache/transcript-text.js';
import { onlyEntry, type EntryFormat } from '../../transcripts/response/transcripts-response.js';
import { givenVideos, type VideoSource } from '../../transcripts/sources/video-list.js';
import type { ChannelUploads } from '../../transcripts/sources/channel-uploads.js';
import type { PlaylistSource } from '../../transcripts/sources/playlist-source.js';
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
  limit: number;
  /** As in the query: separated by commas. */
  languages?: string;
  format: EntryFormat;
}

/**
 * Prints what the service would respond to standard output, and the progress to standard error.
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
  if (videoId === undefined && (format === 'srt' || format === 'vtt'))
    throw new Error(`${format} is a format of one video. Use the URL of a video, or --format text.`);
  const { transcripts, payer } = services;
  const source = videoId === undefined ? listOf(reference, limit, services) : givenVideos([videoId], videoId);
  const end = new AbortController();
  try {
    const times = { startedAtMs: performance.now(), responseEnd: end.signal };
    const plan = await transcripts.prepare({ source, languages }, payer, times);
    const events = withProgress(transcripts.deliver(plan).events('listed'), plan.order.length);
    await writeOut((videoId === undefined ? listPieces : entryPieces)(format, events, languages));
  } finally {
    // The fetching does not wait for the reader: when the reader stops early, nothing else would end it.
    end.abort();
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

function listOf(reference: string, limit: number, { uploads, playlists }: PrintServices): VideoSource {
  return parsePlaylistReference(reference) ? playlists.source(reference, limit) : uploads.source(reference, { limit });
}

/** Reports on standard error how many videos are done: in one line on a terminal, at the end otherwise. */
async function* withProgress(
  events: AsyncGenerator<TranscriptsEvent, void>,
  total: number,
): AsyncGenerator<TranscriptsEvent, void> {
  const { isTTY } = process.stderr;
  let done = 0;
  const report = (end: string): void =>
    void process.stderr.write(`${isTTY ? '\r' : ''}${done} of ${total} videos${end}`);
  if (isTTY) report('');
  for await (const event of events) {
    if (event.type === 'result') {
      done++;
      if (isTTY) report('');
    }
    if (event.type === 'summary') {
      const { succeeded, failed } = event.summary;
      report(`: ${succeeded} with a transcript, ${failed} without\n`);
    }
    yield event;
  }
}

async function* entryPieces(
  format: EntryFormat,
  events: AsyncGenerator<TranscriptsEvent, void>,
  languages: readonly string[],
): AsyncGenerator<string | Buffer> {
  const entry = await onlyEntry(events);
  if (format === 'json') yield* bytesOf([entryJson('', entry, '')]);
  else yield formatEntry(format, entry, languages);
}

async function* listPieces(
  format: EntryFormat,
  events: AsyncGenerator<TranscriptsEvent>,
  languages: readonly string[],
): AsyncGenerator<string | Buffer> {
  if (format === 'json') yield* bytesOf(serializeJson(events));
  else if (format === 'markdown') yield* markdownDocument(events, languages);
  else yield* textPieces(format, events, languages);
}

/** The texts of several videos, each below its title and URL. */
async function* textPieces(
  format: TranscriptFormat,
  events: AsyncGenerator<TranscriptsEvent>,
  languages: readonly string[],
): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'result') continue;
    const { entry } = event;
    const { videoId, metadata } = entry;
    yield `${metadata.title ?? videoId}\n${metadata.url}\n\n`;
    if (entry.ok) yield formatEntry(format, entry, languages);
    else yield `(${entry.error.message})\n`;
    yield '\n';
  }
}

async function* bytesOf(chunks: AsyncIterable<Chunk> | Iterable<Chunk>): AsyncGenerator<string | Buffer> {
  for await (const chunk of chunks)
    for (const part of chunk) yield typeof part === 'string' ? part : await inflate(part);
  yield '\n';
}

/** Writes to standard output no faster than it is read. A reader that stops early, such as `head`, is no error. */
async function writeOut(pieces: AsyncIterable<string | Buffer>): Promise<void> {
  try {
    await pipeline(Readable.from(pieces), process.stdout, { end: false });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error;
  }
}
