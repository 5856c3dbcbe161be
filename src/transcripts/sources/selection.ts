import type { Upload, VideoKind } from '../../domain/transcript.js';
import { canBePublishedSince } from '../cache/lifetimes.js';
import type { CountedList } from './counted-list.js';

/** How deep a list is read for videos of some kinds, or published after a time. */
const FILTERED_DEPTH_MAX = 500;

/** Which videos of a list a call is about, from its start on. */
export interface Selection {
  limit: number;
  /** As for `isOfKinds`. */
  kinds?: readonly VideoKind[] | undefined;
  /** A time (ISO 8601): only those that can have been published then or later. */
  publishedAfter?: string | undefined;
  /** The ID of a video: only those above it; all when it is not among them. */
  since?: string | undefined;
}

export interface Selected {
  uploads: Upload[];
  /** Whether the video of `since` was found; undefined without it. */
  sinceFound: boolean | undefined;
}

/**
 * Reads a list as deep as a selection needs.
 *
 * @param read reads at least so many videos of the list, or all
 * @param order of a list that is newest first, the end of what was read is the oldest of it
 */
export async function readSelection<List extends Pick<CountedList, 'uploads' | 'complete'>>(
  selection: Selection,
  read: (count: number) => Promise<List>,
  order: 'newest-first' | 'any' = 'any',
): Promise<{ list: List } & Selected> {
  const { limit } = selection;
  const list = await read(limit);
  const selected = selectedOf(list.uploads, selection);
  const isEnough = selected.uploads.length === limit || selected.sinceFound === true || list.complete;
  const oldest = list.uploads.at(-1);
  const isPast = order === 'newest-first' && oldest !== undefined && !isPublishedAfter(oldest, selection);
  if (!isFiltered(selection) || isEnough || isPast) return { list, ...selected };
  const deeper = await read(FILTERED_DEPTH_MAX);
  return { list: deeper, ...selectedOf(deeper.uploads, selection) };
}

/** Whether a video is of one of some kinds, empty for all. One whose kind the platform does not state can be a video or a Short. */
export function isOfKinds({ kind }: Upload, kinds: readonly VideoKind[]): boolean {
  const possible: readonly VideoKind[] = kind === null ? ['video', 'short'] : [kind];
  return kinds.length === 0 || possible.some((each) => kinds.includes(each));
}

/** Whether a video can have been published at the time of a request or later. */
export function isPublishedAfter(
  upload: Upload,
  { publishedAfter }: { publishedAfter?: string | null | undefined },
  nowMs = Date.now(),
): boolean {
  return (publishedAfter ?? null) === null || canBePublishedSince(upload, Date.parse(String(publishedAfter)), nowMs);
}

const isFiltered = ({ kinds, publishedAfter }: Selection): boolean => (kinds ?? publishedAfter) !== undefined;

function selectedOf(uploads: readonly Upload[], selection: Selection): Selected {
  const { limit, kinds = [], since } = selection;
  const selected: Upload[] = [];
  for (const upload of uploads.slice(0, isFiltered(selection) ? FILTERED_DEPTH_MAX : limit)) {
    if (upload.videoId === since) return { uploads: selected, sinceFound: true };
    if (isOfKinds(upload, kinds) && isPublishedAfter(upload, selection)) selected.push(upload);
    if (selected.length === limit) break;
  }
  return { uploads: selected, sinceFound: since === undefined ? undefined : false };
}
