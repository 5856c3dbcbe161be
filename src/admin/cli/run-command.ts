import { Command, CommanderError } from 'commander';
import { EnvironmentError } from '../../config/environment.js';
import { VERSION } from '../../config/package.js';
import { escapeInvisible } from '../../observability/logging/logger.js';
import { redactApiKeys } from '../../domain/api-key-text.js';
import { addAdminCommands } from './admin-commands.js';
import { withLocalService, withOperations, type CreateService } from './local-service.js';
import { print, type CommandResult, type RunWork } from './output.js';
import { addTranscriptCommands } from './transcript-commands.js';

/**
 * Runs one command. The result is printed to standard output, an error as one line to standard error (one line per
 * invalid environment variable).
 *
 * @returns the exit code
 */
export async function runCommand(args: readonly string[], createService: CreateService): Promise<number> {
  try {
    await program(createService).parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    for (const line of errorLines(error)) process.stderr.write(`error: ${line}\n`);
    return 1;
  }
}

function program(createService: CreateService): Command {
  const root = new Command('channel-transcripts')
    .description('Manage organizations, API keys, usage and archive jobs, and read transcripts.')
    .version(VERSION, '--version', 'print the version')
    .option('--json', 'print the result as one JSON document')
    .configureHelp({ showGlobalOptions: true })
    // Errors are thrown, and printed by runCommand as one line.
    .configureOutput({ writeErr: () => undefined, outputError: () => undefined })
    .exitOverride();
  const show = (result: CommandResult) => print(result, root.opts<{ json?: boolean }>().json === true);
  const run: RunWork = async (work) => show(await withOperations(createService, work));
  root
    .command('migrate')
    .description('apply pending migrations of the database, which every start of the service does as well')
    // The start of the service has applied them.
    .action(() => run(() => Promise.resolve({ json: { migrated: true }, text: 'The database is up to date.' })));
  addAdminCommands(root, run);
  addTranscriptCommands(root, async (work, options) => {
    const result = await withLocalService(createService, work, options);
    if (result) await show(result);
  });
  return root;
}

function errorLines(error: unknown): string[] {
  if (error instanceof EnvironmentError) return error.faults.map(oneLine);
  if (error instanceof CommanderError) {
    const incomplete = error.code === 'commander.help';
    return [incomplete ? 'command missing; see --help' : oneLine(error.message.replace(/^error: /, ''))];
  }
  return [oneLine(error instanceof Error ? error.message || error.name : String(error))];
}

/** An error can repeat the arguments, which can contain a key. */
function oneLine(text: string): string {
  return escapeInvisible(redactApiKeys(text).replace(/\s+/g, ' ').trim());
}
