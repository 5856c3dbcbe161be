import type { Upload } from '../../../domain/transcript.js';
import { lineText } from '../../../transcripts/formats/line-text.js';

/** The shortest limit of common file systems is 143 bytes (eCryptfs); most have 255. */
const NAME_BYTES_MAX = 140;
/** So that the names of up to 99,999 uploads sort by their position. */
const POSITION_DIGITS = 5;

/** Characters that Windows, exFAT or SMB refuse in names, or that separate folders. */
const RESERVED = /[<>:"/\\|?*]+/g;
/** Characters that change or hide what is displayed, or that some file systems refuse. */
const INVISIBLE = /[\p{Cf}\p{Co}\p{Cn}]/gu;

const EXTENSIONS = { json: 'json', markdown: 'md' } as const;

/** The formats of the files of an archive. */
export type ArchiveFormat = keyof typeof EXTENSIONS;
export const ARCHIVE_FORMATS = Object.keys(EXTENSIONS) as ArchiveFormat[];

/**
 * The file name of a video: its date, or its position when the date is not known, its title and its ID. Valid on every
 * common file system.
 *
 * @param position among the listed uploads, counted from the oldest
 */
export function archiveFileName(
  { videoId, title, publishedAt }: Pick<Upload, 'videoId' | 'title' | 'publishedAt'>,
  position: number,
  format: ArchiveFormat,
): string {
  const start = publishedAt?.slice(0, 'yyyy-mm-dd'.length) ?? String(position).padStart(POSITION_DIGITS, '0');
  const end = `[${videoId}].${EXTENSIONS[format]}`;
  const text = safeTitle(title ?? '', NAME_BYTES_MAX - Buffer.byteLength(`${start}  ${end}`));
  return text === '' ? `${start} ${end}` : `${start} ${text} ${end}`;
}

/** The video whose file has this name; undefined for another file. */
export function archivedVideoId(name: string, format: ArchiveFormat): string | undefined {
  const [, videoId, extension] = /\[([\w-]{11})\]\.([a-z]+)$/.exec(name) ?? [];
  return extension === EXTENSIONS[format] && !name.startsWith('.') ? videoId : undefined;
}

function safeTitle(title: string, bytesMax: number): string {
  const text = lineText(title).replace(INVISIBLE, '').normalize('NFC').replace(RESERVED, ' ').replace(/\s+/g, ' ');
  let [cut, bytes] = ['', 0];
  for (const { segment } of new Intl.Segmenter().segment(text.trim())) {
    bytes += Buffer.byteLength(segment);
    if (bytes > bytesMax) break;
    cut += segment;
  }
  return cut.trim();
}
