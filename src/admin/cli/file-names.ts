import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { parseChannelReference } from '../../domain/references/channel-reference.js';
import { parsePlaylistReference } from '../../domain/references/playlist-reference.js';
import type { Upload } from '../../domain/transcript.js';

export const ARCHIVE_FORMATS = ['json', 'markdown'] as const;
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number];
const EXTENSIONS: Record<ArchiveFormat, string> = { json: 'json', markdown: 'md' };

/** With the date and the ID at most 230 bytes, which common file systems allow. */
const TITLE_CHARACTERS_MAX = 50;

/**
 * The file name of a video: its date unless that is not known, the letters and digits of its title, and its ID. No option, not hidden,
 * and without the characters that a link of a note program cannot have.
 */
export function archiveFileName(
  { videoId, title, publishedAt }: Pick<Upload, 'videoId' | 'title' | 'publishedAt'>,
  format: ArchiveFormat,
): string {
  const date = publishedAt?.slice(0, 'yyyy-mm-dd'.length) ?? '';
  const words = (title ?? '').normalize('NFC').replace(/[^\p{L}\p{M}\p{N}.,'&()-]+/gu, ' ');
  const text = [...words.trim()].slice(0, TITLE_CHARACTERS_MAX).join('').trim();
  const start = `${date} ${text}`.replace(/^[ .-]+/, '') || 'video';
  return `${start} ${videoId}.${EXTENSIONS[format]}`.replace(/ {2,}/g, ' ');
}

/**
 * The paths of the videos that have a file in a directory, wherever it was moved there and whatever is before the ID in its name, in
 * which the ID had brackets in version 1.0. What is hidden, such as the trash of a program, does not count.
 */
export async function findFiles(out: string, format: ArchiveFormat): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  if (!existsSync(out)) return files;
  const name = new RegExp(`(?:^|[ [])([\\w-]{11})\\]?\\.${EXTENSIONS[format]}$`);
  for (const entry of await readdir(out, { recursive: true, withFileTypes: true })) {
    const videoId = name.exec(entry.name)?.[1];
    const path = join(entry.parentPath, entry.name);
    const isHidden = `${sep}${relative(out, path)}`.includes(`${sep}.`);
    // A link to a file is one as well; a folder or a link to nothing is not.
    if (videoId !== undefined && !isHidden && !entry.isDirectory() && existsSync(path)) files.set(videoId, path);
  }
  return files;
}

/** The name of the folder of a channel or a playlist beside those of others. */
export function folderName(text: string): string {
  const playlist = parsePlaylistReference(text);
  if (playlist) return playlist.id;
  const reference = parseChannelReference(text);
  if (reference?.kind === 'id') return reference.id;
  if (reference?.kind === 'handle') return `@${reference.handle.toLowerCase()}`;
  return `${reference?.kind ?? 'unknown'}-${reference?.name.toLowerCase() ?? ''}`;
}
