import { at } from '../../harness/transcripts.js';

/** Whether a line of the log tells of no more than a platform that fails. */
export function isExpected(line: string): boolean {
  if (!line.startsWith('{')) return false;
  const entry: unknown = JSON.parse(line);
  if (at(entry, 'level') !== 'error' && at(entry, 'level') !== 'fatal') return true;
  return at(entry, 'event') === 'request' && [502, 504].includes(Number(at(entry, 'status')));
}
