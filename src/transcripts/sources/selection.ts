import type { Upload, VideoKind } from '../../domain/transcript.js';
import type { CountedList } from './counted-list.js';

/** How deep a list is read for videos of some kinds. */
const KINDS_DEPTH_MAX = 500;

/** Which videos of a list a call is about, from its start on. */
export interface Selection {
  limit: number;
  /** As for `isOfKinds`. */
  kinds?: readonly VideoKind[] | undefined;
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
 */
export async function readSelection<List extends Pick<CountedList, 'uploads' | 'complete'>>(
  selection: Selection,
  read: (count: number) => Promise<List>,
): Promise<{ list: List } & Selected> {
  const { limit, kinds } = selection;
  const list = await read(limit);
  const selected = selectedOf(list.uploads, selection);
  const isEnough = selected.uploads.length === limit || selected.sinceFound === true || list.complete;
  if (kinds === undefined || isEnough) return { list, ...selected };
  const deeper = await read(KINDS_DEPTH_MAX);
  return { list: deeper, ...selectedOf(deeper.uploads, selection) };
}

/** Whether a video is of one of some kinds, empty for all. One whose kind the platform does not state can be a video or a Short. */
export function isOfKinds({ kind }: Upload, kinds: readonly VideoKind[]): boolean {
  const possible: readonly VideoKind[] = kind === null ? ['video', 'short'] : [kind];
  return kinds.length === 0 || possible.some((each) => kinds.includes(each));
}

function selectedOf(uploads: readonly Upload[], { limit, kinds, since }: Selection): Selected {
  const selected: Upload[] = [];
  for (const upload of uploads.slice(0, kinds ? KINDS_DEPTH_MAX : limit)) {
    if (upload.videoId === since) return { uploads: selected, sinceFound: true };
    if (kinds === undefined || isOfKinds(upload, kinds)) selected.push(upload);
    if (selected.length === limit) break;
  }
  return { uploads: selected, sinceFound: since === undefined ? undefined : false };
}
