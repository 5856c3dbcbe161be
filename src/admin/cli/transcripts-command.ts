import { Option, type Command } from 'commander';
import type { EntryFormat } from '../../transcripts/response/transcripts-response.js';
import type { ArchiveServices } from './archive/archive-run.js';
import { wholeNumber } from './output.js';
import type { PrintOptions, PrintServices } from './print-transcripts.js';

type LocalServices = PrintServices & ArchiveServices;

/**
 * Opens the services, runs the work and closes the services.
 *
 * @param options.runsJobs whether archive jobs run in this process; the work then ends by itself on a signal, which otherwise
 * closes the services
 */
export type RunLocally = (
  work: (services: LocalServices) => Promise<void>,
  options?: { runsJobs: boolean },
) => Promise<void>;

const FORMATS = ['json', 'text', 'srt', 'vtt', 'markdown'] as const satisfies readonly EntryFormat[];
const LIMIT_DEFAULT = 25;
const REFERENCE =
  'a channel (@handle, ID or URL), a playlist (ID or URL) or the URL of a video; without @, a text in the form of a playlist ID is one';

/** Adds `transcripts`, which prints what the service would respond, without a service and keys. */
export function addTranscriptsCommand(program: Command, run: RunLocally): void {
  program
    .command('transcripts')
    .description('print the transcripts of a channel, a playlist or a video, without a service and keys')
    .argument('<reference>', REFERENCE)
    .option('--limit <n>', 'number of videos at most', wholeNumber(1), LIMIT_DEFAULT)
    .option('--languages <codes>', 'language codes in order of preference, such as en,de')
    .addOption(new Option('--format <format>', 'text, srt and vtt for one video only').choices(FORMATS).default('json'))
    .action((reference: string, options: PrintOptions) =>
      run(async (services) => {
        // Imported here, so that the other commands load neither the formats nor the platform.
        const { printTranscripts } = await import('./print-transcripts.js');
        await printTranscripts(reference, options, services);
      }),
    );
}
