import { at } from '../../harness/transcripts.js';

/** Whether a log line reports only a failure of the platform. */
export function isExpected(line: string): boolean {
  if (!line.startsWith('{')) return false;
  const entry: unknown = JSON.parse(line);
  if (at(entry, 'level') !== 'error' && at(entry, 'level') !== 'fatal') return true;
  return at(entry, 'event') === 'request' && [502, 504].includes(Number(at(entry, 'status')));
}
