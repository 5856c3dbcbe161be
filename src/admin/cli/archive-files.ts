import type { VideoTranscript } from '@channel-transcripts/client';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { Channel, type Includable, Playlist, VIDEO_FAILURES, type VideoFailureCode } from '../../domain/transcript.js';
import { parsePlaylistReference } from '../../domain/references/playlist-reference.js';
import { VIDEO_ID } from '../../domain/references/video-reference.js';
import { Fields, Picked, type Stored } from '../../http/routes/field.js';
import { fromStored, givenFields, storedForm } from '../../http/routes/validation.js';
import { flagOf } from './field-options.js';
import { textFormOf } from '../../transcripts/call-plan.js';
import { fromJson } from '../../transcripts/cache/keyed-codec.js';
import { ARCHIVE_FORMATS, archiveFileName, type ArchiveFormat } from './file-names.js';
import { frontMatter } from './front-matter.js';
import { formatTranscript } from '../../transcripts/formats/transcript-formats.js';
import { PlaylistQueryDto, TextFields } from '../../transcripts/dto/transcripts-query.dto.js';

export const INDEX = 'index.json';
/** A file that is not complete yet. */
const UNFINISHED = '.unfinished';

/** What is read of the results at a time. */
export const ENTRIES_PER_READ = 50;
/** How often the job or the subscription of a directory is looked at. */
export const INTERVAL_MS = 500;

/** `late`: the next archive tries it again. Version 1.0 did not say so. */
const failure = z.object({
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  late: z.boolean().exactOptional(),
});

const video = z.object({
  videoId: z.string().regex(VIDEO_ID),
  title: z.string().nullable(),
  /** Never read: the index can be of somebody else, and the file can be elsewhere now. */
  file: z.string().nullable(),
  /** Why it has no file. */
  error: failure.nullable(),
});

type IndexedVideo = z.infer<typeof video>;

/** What the files have, as a request names it. */
export class ArchiveTexts extends Fields(Picked(PlaylistQueryDto, 'kinds'), TextFields) {}

/** What the files of an archive have in common. */
export interface ArchiveForm extends Stored<ArchiveTexts> {
  format: ArchiveFormat;
  frontMatter: boolean;
}

/** A form with the defaults for what is absent. @throws Error for front matter in another format */
export function archiveForm({ format = 'json', frontMatter = false, ...options }: Partial<ArchiveForm>): ArchiveForm {
  if (frontMatter && format !== 'markdown') throw new Error('--front-matter is for --format markdown.');
  return { format, frontMatter, ...storedForm(ArchiveTexts, options) };
}

/** What is asked for to write the files, as the options of a call. */
export function textsOf({ frontMatter, ...form }: Omit<ArchiveForm, 'format'>): Partial<ArchiveTexts> {
  const include: readonly Includable[] = frontMatter
    ? [...new Set([...(form.include ?? []), 'tags' as const])]
    : (form.include ?? []);
  return Object.fromEntries(givenFields(ArchiveTexts, { ...form, include }));
}

/** The labels of the jobs and subscriptions of a directory, by which a run finds what an earlier one has left. */
export function labelsOf(out: string): { directory: string } {
  return { directory: createHash('sha256').update(resolve(out)).digest('hex') };
}

/** What an archive has the videos of. */
export interface ArchiveSource {
  channel: Channel | null;
  playlist: Playlist | null;
}

/** A channel or a playlist as a request names it. */
export function listNamed(reference: string): { channel: string } | { playlist: string } {
  return parsePlaylistReference(reference) ? { playlist: reference } : { channel: reference };
}

/** The subscription that is written to the directory, and the place in its feed up to which that was done. */
const followed = z.object({ id: z.string(), after: z.coerce.string() });

/** The document `index.json` of an archive. Its videos are in the order of the list, newer ones of a channel first. */
const stored = z.object({
  channel: Channel.nullable(),
  playlist: Playlist.nullable().default(null),
  /** The job whose files are being written; null after a run. */
  unfinishedJob: z.string().nullable().default(null),
  /** Null when the channel is not followed. */
  subscription: followed.nullable().default(null),
  format: z.enum(ARCHIVE_FORMATS),
  frontMatter: z.boolean().default(false),
  videos: z.array(video),
});
const index = stored.loose().transform((row) => ({ ...stored.parse(row), ...fromStored(ArchiveTexts, row) }));

type ArchiveIndex = z.infer<typeof index>;
/** What a run changes in the index beside the videos. */
type ArchiveState = Pick<ArchiveIndex, 'unfinishedJob' | 'subscription'>;

export interface ArchiveOptions {
  out: string;
  form: ArchiveForm;
}

/** A video of a run that is tried again later. */
export interface LateVideo {
  videoId: string;
  code: string;
}

/** How many videos of a directory have a file, may get one later, and have none for good. */
interface ArchiveCounts {
  complete: number;
  late: number;
  failed: number;
}

/**
 * The directory of an archive: the index, which marks it before the first file is written, and a file for each video. A
 * file is complete as soon as it has its name.
 */
export class ArchiveFiles {
  written = 0;
  /** The videos of the run, with their positions in its list. */
  private readonly current = new Map<string, { position: number; video: IndexedVideo }>();
  private readonly indexed: ReadonlyMap<string, IndexedVideo>;
  /** What the directory has the videos of. */
  source: ArchiveSource;

  /** @param files the files that are there, by their videos; what is written is added */
  private constructor(
    private readonly options: ArchiveOptions,
    private readonly files: Map<string, string>,
    private readonly known: ArchiveIndex | undefined,
  ) {
    this.indexed = new Map(known?.videos.map((video) => [video.videoId, video]));
    this.source = known ?? { channel: null, playlist: null };
  }

  /** The job that a run was writing when it was killed. */
  get unfinishedJob(): string | null {
    return this.known?.unfinishedJob ?? null;
  }

  /** The subscription of the directory; null when its channel is not followed. */
  get subscription(): z.infer<typeof followed> | null {
    return this.known?.subscription ?? null;
  }

  /** Whether it has a file, also when the index is missing. */
  get isStarted(): boolean {
    const start = `${resolve(this.options.out)}${sep}`;
    return [...this.files.values()].some((path) => resolve(path).startsWith(start));
  }

  /**
   * The video above which a new subscription begins: the newest of an archive. When the subscription of the directory was deleted
   * it is the last one, above which all are delivered again, because the first became final last and is not the newest.
   */
  get start(): string | undefined {
    return this.known?.videos.at(this.subscription ? -1 : 0)?.videoId;
  }

  /** Reads the index of the directory, which need not exist. @throws Error when it has something else than this archive */
  static async open(options: ArchiveOptions, files: Map<string, string>): Promise<ArchiveFiles> {
    const path = join(options.out, INDEX);
    if (!existsSync(path)) return new ArchiveFiles(options, files, undefined);
    const known = fromJson(await readFile(path), index);
    if (!known) throw new Error(`${path} is not the index of an archive. Choose another directory.`);
    const flags = flagsOf(known);
    if (flags !== flagsOf(options.form))
      throw new Error(`${options.out} has an archive with ${flags}. Use the same options or another directory.`);
    return new ArchiveFiles(options, files, known);
  }

  /** Whether a video need not be read: it has a file, or none for good. */
  isDone(videoId: string): boolean {
    return this.files.has(videoId) || stateOf(this.indexed.get(videoId)) === 'failed';
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
    this.source = { channel, playlist };
    const state = { unfinishedJob: null, subscription: null, ...this.known, ...changes, ...form };
    const document = { ...state, channel, playlist, videos: this.videos() };
    await this.write(INDEX, `${JSON.stringify(document, null, 2)}\n`);
  }

  /**
   * Writes the file of a video unless it exists.
   *
   * @param position its place in the list of the index
   * @param mayPass whether a failure can pass
   */
  async add(entry: VideoTranscript, position: number, mayPass: (entry: VideoTranscript) => boolean): Promise<void> {
    const { videoId, metadata, transcript, error } = entry;
    const { title } = metadata;
    const known = { videoId, title, file: null, error: null, ...this.indexed.get(videoId) };
    const failure = error && { ...error, late: mayPass(entry) };
    this.current.set(videoId, { position, video: failure ? { videoId, title, file: null, error: failure } : known });
    // The text of a video that need not be read is empty.
    if (error || this.files.has(videoId) || Object.keys(transcript).length === 0) return;
    const { form, out } = this.options;
    const name = archiveFileName({ videoId, ...metadata }, form.format);
    await this.write(name, await this.textOf(entry));
    this.files.set(videoId, join(out, name));
    this.written++;
  }

  /** Records a video that the run leaves to a later one. */
  addLate({ videoId, code }: LateVideo): void {
    const known = this.indexed.get(videoId);
    const position = this.current.get(videoId)?.position ?? 0;
    const { message, retryable } = VIDEO_FAILURES[code as VideoFailureCode];
    const error = { code, message, retryable, late: true };
    this.current.set(videoId, { position, video: { videoId, title: known?.title ?? null, file: null, error } });
  }

  /** The videos of the directory that a later run tries again. */
  late(): LateVideo[] {
    return this.videos().flatMap(({ videoId, file, error }) =>
      file === null && error && stateOf({ error }) === 'late' ? [{ videoId, code: error.code }] : [],
    );
  }

  counts(): ArchiveCounts {
    const counts = { complete: 0, late: 0, failed: 0 };
    for (const video of this.videos()) {
      const state = video.file === null ? stateOf(video) : 'complete';
      if (state) counts[state]++;
    }
    return counts;
  }

  /** In the order of the list. */
  private videos(): IndexedVideo[] {
    const others = this.known?.videos.filter(({ videoId }) => !this.current.has(videoId)) ?? [];
    const current = [...this.current.values()].sort((one, other) => one.position - other.position);
    return [...current.map(({ video }) => video), ...others].map((video) => {
      const path = this.files.get(video.videoId);
      if (path === undefined) return { ...video, file: null };
      return { ...video, file: relative(this.options.out, path).replaceAll(sep, '/'), error: null };
    });
  }

  private async textOf(entry: VideoTranscript): Promise<string> {
    const { videoId, metadata, transcript } = entry;
    const { format, frontMatter: hasFrontMatter, include } = this.options.form;
    if (format === 'json') return `${JSON.stringify(entry)}\n`;
    const texts = new Map(Object.entries(transcript));
    const { tags, ...others } = metadata;
    const shown = include?.includes('tags') && tags !== undefined ? metadata : others;
    const text = await formatTranscript(
      format,
      { videoId, metadata: shown, transcript: texts },
      textFormOf(this.options.form),
    );
    const channel = metadata.channel?.name ?? this.source.channel?.name ?? null;
    return hasFrontMatter ? frontMatter(entry, channel) + text : text;
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

/** Whether a video without a file may get one; undefined when nothing is known. */
function stateOf(video: Pick<IndexedVideo, 'error'> | undefined): 'late' | 'failed' | undefined {
  if (!video?.error) return undefined;
  return (video.error.late ?? true) ? 'late' : 'failed';
}

/** The name of what an archive has. */
export function nameOf(source: ArchiveSource | undefined): string {
  return source?.channel?.name ?? source?.playlist?.title ?? source?.playlist?.id ?? '';
}

/** The options of an archive, for an error. */
function flagsOf({ format, frontMatter, ...texts }: ArchiveForm): string {
  const flags = givenFields(ArchiveTexts, texts).map(([name, value]) => `${flagOf(name)} ${String(value)}`);
  return [`--format ${format}`, ...(frontMatter ? ['--front-matter'] : []), ...flags].join(' ');
}
