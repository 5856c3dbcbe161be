import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseWholeNumber } from '../../../config/variables.js';
import type { CommandResult } from '../output.js';
import type { RunLocally } from '../transcripts-command.js';
import type { ArchiveFormat } from './archive-files.js';
import type { ArchiveResult } from './archive-run.js';

const FORMATS = ['json', 'markdown'] as const satisfies readonly ArchiveFormat[];
/** The exit codes of a process that a signal has ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;
const CLEAR_LINE = '\r\u001b[K';

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
    .addOption(new Option('--format <format>', 'format of the files').choices(FORMATS).default('json'))
    .option('--limit <n>', 'number of uploads at most, the newest ones (default: all)', parseLimit)
    .option('--languages <codes>', 'language codes in order of preference, such as en,de')
    .action((reference: string, { out, format, limit, languages: codes }: ArchiveOptions) =>
      runLocally(
        async (services) => {
          // Imported here, so that the other commands load neither the formats nor the platform.
          const { archiveChannel } = await import('./archive-run.js');
          const { requestedLanguages } = await import('../print-transcripts.js');
          const languages = requestedLanguages(codes);
          const request = { reference, out, format, limit: limit ?? null, languages };
          const run = (stop: AbortSignal): Promise<ArchiveResult> =>
            archiveChannel(request, services, stop, showProgress).finally(() => showProgress(''));
          print(resultOf(out, await untilSignal(run)));
        },
        { runsJobs: true },
      ),
    );
}

/** Shows a line on a terminal, instead of the one before. */
function showProgress(line: string): void {
  const { stderr } = process;
  if (stderr.isTTY) stderr.write(`${CLEAR_LINE}${line.slice(0, stderr.columns - 1)}`);
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

function resultOf(
  directory: string,
  { channel, written, summary, pending, retryAfterSeconds }: ArchiveResult,
): CommandResult {
  const { succeeded, failed } = summary;
  const total = summary.total + pending;
  const why = failed > 0 ? ' index.json says why others have none.' : '';
  const minutes = Math.ceil(retryAfterSeconds / 60);
  return {
    json: { channel, directory, written, summary: { total, succeeded, failed, pending } },
    text: `${channel.name}: ${succeeded} of ${total} videos have a file in ${directory}, ${written} of them new.${why}`,
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
