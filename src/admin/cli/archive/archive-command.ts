import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseWholeNumber } from '../../../config/variables.js';
import type { CommandResult } from '../output.js';
import type { RunLocally } from '../transcripts-command.js';
import type { ArchiveResult } from './archive-channel.js';
import { summarize } from './archive-files.js';
import { ARCHIVE_FORMATS, type ArchiveFormat } from './file-name.js';

/** The exit codes of a process that a signal has ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

interface ArchiveOptions {
  out: string;
  format: ArchiveFormat;
  limit?: number;
  languages?: string;
}

/** Adds `archive`, which runs an archive job and writes a file for each video of a channel. */
export function addArchiveCommand(
  program: Command,
  runLocally: RunLocally,
  print: (result: CommandResult) => void,
): void {
  program
    .command('archive')
    .description('write the transcripts of a channel to a directory, a file per video; continues what was stopped')
    .argument('<channel>', '@handle, ID or URL')
    .requiredOption('--out <directory>', 'created unless it exists')
    .addOption(new Option('--format <format>', 'format of the files').choices(ARCHIVE_FORMATS).default('json'))
    .option('--limit <n>', 'number of uploads at most, the newest ones (default: all)', parseLimit)
    .option('--languages <codes>', 'language codes in order of preference, such as en,de')
    .action((reference: string, { out, format, limit, languages: codes }: ArchiveOptions) =>
      runLocally(
        async (services) => {
          // Imported here, so that the other commands load neither the formats nor the platform.
          const { archiveChannel } = await import('./archive-channel.js');
          const { ProgressReport } = await import('./progress.js');
          const { requestedLanguages } = await import('../print-transcripts.js');
          const languages = requestedLanguages(codes);
          const request = { reference, out, format, limit: limit ?? null, languages };
          const progress = new ProgressReport(process.stderr);
          print(resultOf(await untilSignal((stop) => archiveChannel(request, services, stop, progress))));
        },
        { runsJobs: true },
      ),
    );
}

/** Runs work that ends early, and cleanly, on the first signal. The second one ends the process. */
async function untilSignal<T>(work: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const listeners = Object.entries(EXIT_CODES).map(([signal, code]) => [signal, () => stop.abort(code)] as const);
  for (const [signal, listener] of listeners) process.once(signal, listener);
  try {
    return await work(stop.signal);
  } finally {
    for (const [signal, listener] of listeners) process.off(signal, listener);
  }
}

function resultOf({ channel, directory, written, pending, retryAfterSeconds, videos }: ArchiveResult): CommandResult {
  const reasons = new Map<string, number>();
  for (const { error } of videos) if (error) reasons.set(error.code, (reasons.get(error.code) ?? 0) + 1);
  const without = [...reasons].map(([code, count]) => `${count} ${code}`).join(', ');
  const { succeeded, failed } = summarize(videos);
  const total = videos.length + pending;
  const lines = [
    `${channel.name}: ${succeeded} of ${total} videos have a file in ${directory}, ${written} of them new.`,
    ...(without === '' ? [] : [`Without a transcript: ${without}. index.json has the reasons.`]),
  ];
  const minutes = Math.ceil(retryAfterSeconds / 60);
  return {
    json: { channel, directory, written, summary: { total, succeeded, failed, pending } },
    text: lines.join('\n'),
    ...(pending > 0 && {
      failure: new Error(
        `${pending} videos could not be read yet. Run the same command again in ${minutes} min to retry them.`,
      ),
    }),
  };
}

function parseLimit(text: string): number {
  const limit = parseWholeNumber(text);
  if (limit === undefined || limit === 0) throw new InvalidArgumentError('Use an integer of at least 1.');
  return limit;
}
