import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseWholeNumber } from '../../../config/variables.js';
import type { CommandResult } from '../output.js';
import type { RunLocally } from '../transcripts-command.js';
import type { ArchiveResult } from './archive-channel.js';
import { ARCHIVE_FORMATS, type ArchiveFormat } from './file-name.js';

/** The exit codes of a process that a signal has ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

interface ArchiveOptions {
  out: string;
  format: ArchiveFormat;
  limit?: number;
  languages?: string;
}

/** Adds `archive`, which writes a file for each video of a channel, without a service, keys or quota. */
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
    .action((reference: string, options: ArchiveOptions) =>
      runLocally(
        async (services) => {
          // Imported here, so that the other commands load neither the formats nor the platform.
          const { archiveChannel } = await import('./archive-channel.js');
          const { ProgressReport } = await import('./progress.js');
          const { requestedLanguages } = await import('../print-transcripts.js');
          const { out, format, limit } = options;
          const request = { reference, out, format, limit, languages: requestedLanguages(options.languages) };
          const result = await untilSignal((stop) =>
            archiveChannel(request, services, stop, new ProgressReport(process.stderr)),
          );
          print(resultOf(result));
        },
        { handlesSignals: true },
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

function resultOf({ channel, directory, written, summary, videos }: ArchiveResult): CommandResult {
  const reasons = new Map<string, number>();
  for (const { file, error } of videos)
    if (file === null && error !== null) reasons.set(error.code, (reasons.get(error.code) ?? 0) + 1);
  const failed = [...reasons].map(([code, count]) => `${count} ${code}`).join(', ');
  const { total, succeeded } = summary;
  const lines = [
    `${channel.name}: ${succeeded} of ${total} videos have a file in ${directory}, ${written} of them new.`,
    ...(failed === '' ? [] : [`Without a transcript: ${failed}. index.json has the reasons.`]),
  ];
  const unread = [...reasons].reduce((sum, [code, count]) => (code.startsWith('upstream_') ? sum + count : sum), 0);
  return {
    json: { channel, directory, written, summary },
    text: lines.join('\n'),
    ...(unread > 0 && {
      failure: new Error(`YouTube did not serve ${unread} of the videos. Run the same command again to retry them.`),
    }),
  };
}

function parseLimit(text: string): number {
  const limit = parseWholeNumber(text);
  if (limit === undefined || limit === 0) throw new InvalidArgumentError('Use an integer of at least 1.');
  return limit;
}
