import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * Loaded with --import into the service. It counts the calls of its functions, and sends over IPC those since it was last asked.
 */

/** The calls of the functions of one file of `src`. */
export interface FileCalls {
  file: string;
  functions: number;
  calls: number;
}

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

async function take(): Promise<FileCalls[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result.flatMap(({ url, functions }) => {
    if (!url.startsWith('file:') || !fileURLToPath(url).startsWith(SOURCE)) return [];
    const counts = functions.flatMap(({ ranges: [range] }) => (range && range.count > 0 ? [range.count] : []));
    const calls = counts.reduce((sum, count) => sum + count, 0);
    const file = relative(SOURCE, fileURLToPath(url)).replace(/\.js$/, '.ts');
    return calls === 0 ? [] : [{ file, functions: counts.length, calls }];
  });
}

process.on('message', () => void take().then((files) => process.send?.(files)));
process.channel?.unref();
