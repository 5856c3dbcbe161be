import type { Subscription } from '@channel-transcripts/client';
import { counted } from '../../domain/errors.js';
import { nameOf, type ArchiveFiles, type ArchiveSource, type LateVideo } from './archive-files.js';
import { TryLaterError, type CommandResult } from './output.js';

const LATE_SHOWN_MAX = 10;

/** What a run has left in a directory. */
export interface FolderState {
  /** What the JSON begins with. */
  source: ArchiveSource & { subscription?: Subscription };
  /** The name of a source that could not be read yet. */
  reference: string;
  directory: string;
  files: Pick<ArchiveFiles, 'counts' | 'written'>;
  /** The first videos that are tried again. */
  late: readonly LateVideo[];
  /** How many pending ones the index does not have. */
  untried: number;
  /** Whether the list could not be read to its end. */
  isIncomplete: boolean;
}

/**
 * The result of a run: a line for each folder, and a last one with the sums unless there is one folder alone.
 *
 * @param faults why others have none
 */
export function resultOf(folders: readonly FolderState[], out: string, faults: readonly string[] = []): CommandResult {
  const results = folders.map(folderResult);
  const [only] = results;
  const failure = faults.length > 0 ? new Error(faults.join(' ')) : results.find((result) => result.failure)?.failure;
  if (only && results.length + faults.length === 1) return only;
  const sums = { complete: 0, written: 0, late: 0, failed: 0 };
  for (const { json } of results)
    for (const name of ['complete', 'written', 'late', 'failed'] as const) sums[name] += json[name];
  const lists = results.length + faults.length;
  const line = `${results.length} of ${counted(lists, 'list')}: ${countsText(sums)} in ${out}.`;
  return {
    json: { directory: out, ...sums, lists, faults },
    lines: results.map(({ json }) => json),
    text: [...results.map(({ text }) => text), line].join('\n'),
    failure,
  };
}

function folderResult({ source, reference, directory, files, late: lateVideos, untried, isIncomplete }: FolderState) {
  const { complete, late: tried, failed } = files.counts();
  const counts = { complete, written: files.written, late: tried + untried, failed };
  const { channel, playlist } = source;
  const rest = isIncomplete ? ' The list could not be read to its end yet.' : '';
  return {
    json: { ...source, directory, ...counts, lateVideos },
    text: `${nameOf({ channel, playlist }) || reference}: ${countsText(counts)} in ${directory}.${rest}${lateText(lateVideos, counts.late)}`,
    failure: counts.late > 0 || isIncomplete ? new TryLaterError() : undefined,
  };
}

function countsText({ complete, written, late, failed }: Record<'complete' | 'written' | 'late' | 'failed', number>) {
  return `${complete} complete (${written} new), ${late} late, ${failed} failed`;
}

function lateText(videos: readonly LateVideo[], late: number): string {
  if (late === 0) return '';
  const names = videos.slice(0, LATE_SHOWN_MAX).map(({ videoId, code }) => `${videoId} (${code})`);
  if (late > names.length) names.push(`${late - names.length} more`);
  return ` Late, tried again by the next run: ${names.join(', ')}.`;
}
