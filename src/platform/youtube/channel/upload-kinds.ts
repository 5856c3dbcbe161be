import type { Upload } from '../../../domain/transcript.js';

/** What was read of the list of a channel's Shorts, newest first; `complete` when it has no more. */
export interface ShortsList {
  ids: readonly string[];
  complete: boolean;
}

/**
 * Says which uploads are Shorts: in the list of uploads they look like videos. `video` is said only as far as the list of
 * Shorts was read; past its oldest entry, and when it could not be read (null), the kind stays unknown.
 */
export function withKinds(uploads: readonly Upload[], shorts: ShortsList | null): Upload[] {
  if (!shorts) return [...uploads];
  const ids = new Set(shorts.ids);
  const coveredCount = shorts.complete ? uploads.length : coverage(uploads, shorts.ids);
  return uploads.map((upload, index) => {
    if (upload.kind === 'live' || upload.kind === 'upcoming') return upload;
    if (ids.has(upload.videoId)) return { ...upload, kind: 'short' };
    return index < coveredCount ? { ...upload, kind: upload.kind ?? 'video' } : upload;
  });
}

/** How many uploads, from the newest, a part of the list of Shorts tells about. */
function coverage(uploads: readonly Upload[], shortIds: readonly string[]): number {
  const oldest = shortIds.at(-1);
  if (oldest === undefined) return 0;
  const position = uploads.findIndex(({ videoId }) => videoId === oldest);
  // An oldest Short that is not among the uploads is older than all of them, both lists being newest first.
  return position < 0 ? uploads.length : position + 1;
}

/** Adds the exact dates that the channel's feed has. */
export function withDates(uploads: readonly Upload[], dates: ReadonlyMap<string, string> | null): Upload[] {
  return uploads.map((upload) => ({
    ...upload,
    publishedAt: upload.publishedAt ?? dates?.get(upload.videoId) ?? null,
  }));
}
