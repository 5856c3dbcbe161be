import type { VideoTranscript } from '@channel-transcripts/client';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { Channel, Playlist, type Upload } from '../../domain/transcript.js';
import { VIDEO_ID } from '../../domain/references/video-reference.js';
import { Fields, Picked, type Stored } from '../../http/routes/field.js';
import { fromStored, givenFields, storedForm } from '../../http/routes/validation.js';
import { flagOf } from './field-options.js';
import { textFormOf } from '../../transcripts/call-plan.js';
import { fromJson } from '../../transcripts/cache/keyed-codec.js';
import { formatTranscript } from '../../transcripts/formats/transcript-formats.js';
import { PlaylistQueryDto, TextFields } from '../../transcripts/dto/transcripts-query.dto.js';

export const ARCHIVE_FORMATS = ['json', 'markdown'] as const;
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number];
const EXTENSIONS: Record<ArchiveFormat, string> = { json: 'json', markdown: 'md' };

const INDEX = 'index.json';
/** A file that is not complete yet. */
const UNFINISHED = '.unfinished';

/** What is read of the results at a time. */
export const ENTRIES_PER_READ = 50;
/** How often the job or the subscription of a directory is looked at. */
export const INTERVAL_MS = 500;

/** With the date and the ID at most 230 bytes, which common file systems allow. */
const TITLE_CHARACTERS_MAX = 50;

const failure = z.object({ code: z.string(), message: z.string(), retryable: z.boolean() });

/** What `archiveFileName` makes: without a path, because the index can be of somebody else. */
const FILE_NAME = /^[^<>:"/\\|?*\p{Cc}]*\[[\w-]{11}\]\.(?:json|md)$/u;

const video = z.object({
  videoId: z.string().regex(VIDEO_ID),
  title: z.string().nullable(),
  file: z.string().regex(FILE_NAME).nullable(),
  /** Why it has no file. */
  error: failure.nullable(),
});

type IndexedVideo = z.infer<typeof video>;

/** What the files have, as a request names it. */
export class ArchiveTexts extends Fields(Picked(PlaylistQueryDto, 'kinds'), TextFields) {}

/** What the files of an archive have in common. */
export interface ArchiveForm extends Stored<ArchiveTexts> {
  format: ArchiveFormat;
}

/** A form with the defaults for what is absent. */
export function archiveForm({ format = 'json', ...options }: Partial<ArchiveForm>): ArchiveForm {
  return { format, ...storedForm(ArchiveTexts, options) };
}

/** What the files have, as the options of a call. */
export function textsOf(form: Stored<ArchiveTexts>): Partial<ArchiveTexts> {
  return Object.fromEntries(givenFields(ArchiveTexts, form));
}

/** The idempotency key by which a run finds the job or subscription that an earlier one for the same directory has begun. */
export function directoryKey(command: 'archive' | 'follow', out: string, request: object): string {
  return createHash('sha256')
    .update(JSON.stringify([command, resolve(out), request]))
    .digest('hex');
}

/** What an archive has the videos of. */
export interface ArchiveSource {
  channel: Channel | null;
  playlist: Playlist | null;
}

/** The subscription that is written to the directory, and the place in its feed up to which that was done. */
const followed = z.object({ id: z.string(), after: z.coerce.string() });

/** The document `index.json` of an archive. Its videos are in the order of the list, newer ones of a channel first. */
const stored = z.object({
  channel: Channel.nullable(),
  playlist: Playlist.nullable().default(null),
  /** The job whose files are being written, and are not among `videos` yet; null when it is complete. */
  unfinishedJob: z.string().nullable().default(null),
  /** Null when the channel is not followed. */
  subscription: followed.nullable().default(null),
  format: z.enum(ARCHIVE_FORMATS),
  /** Of the last complete job; null for all uploads, 0 when there was none. */
  limit: z.int().nullable(),
  videos: z.array(video),
});
const index = stored.loose().transform((row) => ({ ...stored.parse(row), ...fromStored(ArchiveTexts, row) }));

type ArchiveIndex = z.infer<typeof index>;
/** What a run changes in the index beside the videos. */
type ArchiveState = Pick<ArchiveIndex, 'unfinishedJob' | 'subscription' | 'limit'>;

export interface ArchiveOptions {
  out: string;
  form: ArchiveForm;
  /** The number of videos at most, the newest ones; all by default. */
  limit?: number | undefined;
}

/**
 * The directory of an archive: the index, which marks it before the first file is written, and a file for each video. A
 * file is complete as soon as it has its name.
 */
export class ArchiveFiles {
  written = 0;
  /** The videos of the job, with their positions in its list. */
  private readonly current = new Map<string, { position: number; video: IndexedVideo }>();
  /** The file of each video in the index: its name can have a date that the list no longer has. */
  private readonly knownFiles: ReadonlyMap<string, string | null>;

  private constructor(
    private readonly options: ArchiveOptions,
    private readonly known: ArchiveIndex | undefined,
  ) {
    this.knownFiles = new Map(known?.videos.map(({ videoId, file }) => [videoId, file]));
  }

  /**
   * The video above which a job takes the uploads: the newest of the last job of a channel, unless that had another limit. Null
   * in a followed directory, because an upload below its first video can still be pending.
   */
  get since(): string | null {
    if (!this.known?.channel || this.subscription || this.known.limit !== (this.options.limit ?? null)) return null;
    return this.known.videos[0]?.videoId ?? null;
  }

  /** The subscription of the directory; null when its channel is not followed. */
  get subscription(): z.infer<typeof followed> | null {
    return this.known?.subscription ?? null;
  }

  /**
   * The video above which a new subscription begins: the newest of an archive. When the subscription of the directory was deleted
   * it is the last one, above which all are delivered again, because the first became final last and is not the newest.
   */
  get start(): string | undefined {
    return this.known?.videos.at(this.subscription ? -1 : 0)?.videoId;
  }

  /** Reads the index of the directory, which need not exist. @throws Error when it has something else than this archive */
  static async open(options: ArchiveOptions): Promise<ArchiveFiles> {
    const path = join(options.out, INDEX);
    if (!existsSync(path)) return new ArchiveFiles(options, undefined);
    const known = fromJson(await readFile(path), index);
    if (!known) throw new Error(`${path} is not the index of an archive. Choose another directory.`);
    const flags = flagsOf(known);
    if (flags !== flagsOf(options.form))
      throw new Error(`${options.out} has an archive with ${flags}. Use the same options or another directory.`);
    return new ArchiveFiles(options, known);
  }

  /**
   * Writes the index: once before the first file, so that nothing else is written to the directory, and after files.
   *
   * @throws Error when the directory has another archive
   */
  async save({ channel, playlist }: ArchiveSource, changes: Partial<ArchiveState>): Promise<void> {
    const { out, form } = this.options;
    const other = this.known?.channel ?? this.known?.playlist;
    if (other && other.id !== (channel ?? playlist)?.id)
      throw new Error(`${out} has the archive of ${nameOf(this.known)} (${other.id}). Choose another directory.`);
    const state = { unfinishedJob: null, subscription: null, limit: 0, ...this.known, ...changes, ...form };
    const document = { ...state, channel, playlist, videos: this.videos() };
    await this.write(INDEX, `${JSON.stringify(document, null, 2)}\n`);
  }

  /** Writes the file of a video unless it exists. @param position its place in the list of the index */
  async add(entry: VideoTranscript, position: number): Promise<void> {
    const { videoId, metadata, transcript, error } = entry;
    const { out } = this.options;
    const { format } = this.options.form;
    const file = this.knownFiles.get(videoId) ?? archiveFileName({ videoId, ...metadata }, format);
    const exists = existsSync(join(out, file));
    // A video that fails now keeps the file that an earlier run has written.
    const state = error && !exists ? { file: null, error } : { file, error: null };
    this.current.set(videoId, { position, video: { videoId, title: metadata.title, ...state } });
    if (error || exists) return;
    const texts = new Map(Object.entries(transcript));
    const written =
      format === 'json'
        ? `${JSON.stringify(entry)}\n`
        : await formatTranscript(format, { videoId, metadata, transcript: texts }, textFormOf(this.options.form));
    await this.write(file, written);
    this.written++;
  }

  private videos(): IndexedVideo[] {
    const others = this.known?.videos.filter(({ videoId }) => !this.current.has(videoId)) ?? [];
    const current = [...this.current.values()].sort((one, other) => one.position - other.position);
    return [...current.map(({ video }) => video), ...others];
  }

  private async write(name: string, data: Parameters<typeof writeFile>[1]): Promise<void> {
    const { out } = this.options;
    const unfinished = join(out, UNFINISHED);
    await mkdir(out, { recursive: true });
    // What a stopped run has left, or a link to a file elsewhere.
    await rm(unfinished, { force: true });
    // Otherwise a file can be empty after a power failure although it has its name.
    await writeFile(unfinished, data, { flag: 'wx', flush: true });
    await rename(unfinished, join(out, name));
  }
}

/** The name of what an archive has. */
export function nameOf(source: ArchiveSource | undefined): string {
  return source?.channel?.name ?? source?.playlist?.title ?? source?.playlist?.id ?? '';
}

/** The options of an archive, for an error. */
function flagsOf({ format, ...texts }: ArchiveForm): string {
  const flags = givenFields(ArchiveTexts, texts).map(([name, value]) => `${flagOf(name)} ${String(value)}`);
  return [`--format ${format}`, ...flags].join(' ');
}

/** The file name of a video: its date unless that is not known, the letters and digits of its title, and its ID. No option and not hidden. */
export function archiveFileName(
  { videoId, title, publishedAt }: Pick<Upload, 'videoId' | 'title' | 'publishedAt'>,
  format: ArchiveFormat,
): string {
  const date = publishedAt?.slice(0, 'yyyy-mm-dd'.length) ?? '';
  const words = (title ?? '').normalize('NFC').replace(/[^\p{L}\p{M}\p{N}.,'&()-]+/gu, ' ');
  const text = [...words.trim()].slice(0, TITLE_CHARACTERS_MAX).join('').trim();
  return `${date} ${text} [${videoId}].${EXTENSIONS[format]}`.replace(/ {2,}/g, ' ').replace(/^[ .-]+/, '');
}
