import type { ArchiveCounts, ArchiveFiles, LateVideo } from './archive-files.js';
import { TryLaterError, type CommandResult } from './output.js';

const LATE_SHOWN_MAX = 10;

/** What a run has left in a directory. */
export interface FolderState {
  name: string;
  directory: string;
  files: Pick<ArchiveFiles, 'counts' | 'written'>;
  /** The first videos that are tried again. */
  late: readonly LateVideo[];
  /** How many pending ones the index does not have. */
  untried: number;
  /** Whether the list could not be read to its end. */
  isIncomplete: boolean;
}

/** The result of a run, whose last line has the counts. @param source what the JSON has besides */
export function folderResult(state: FolderState, source: object): CommandResult {
  const { name, directory, isIncomplete } = state;
  const { written } = state.files;
  const { complete, late, failed } = countsOf(state);
  const rest = isIncomplete ? ' The list could not be read to its end yet.' : '';
  const failure = late > 0 || isIncomplete ? new TryLaterError() : undefined;
  return {
    json: { ...source, directory, written, complete, late, failed, lateVideos: state.late },
    text: `${name}: ${complete} complete (${written} new), ${late} late, ${failed} failed in ${directory}.${rest}${lateText(state.late, late)}`,
    failure,
  };
}

export function countsOf({ files, untried }: FolderState): ArchiveCounts {
  const counts = files.counts();
  return { ...counts, late: counts.late + untried };
}

function lateText(videos: readonly LateVideo[], late: number): string {
  if (late === 0) return '';
  const names = videos.slice(0, LATE_SHOWN_MAX).map(({ videoId, code }) => `${videoId} (${code})`);
  if (late > names.length) names.push(`${late - names.length} more`);
  return ` Late, tried again by the next run: ${names.join(', ')}.`;
}
