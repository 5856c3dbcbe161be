import type { Type } from '@nestjs/common';
import { Command, CommanderError } from 'commander';
import { EnvironmentError } from '../../config/environment.js';
import { VERSION } from '../../config/package.js';
import { escapeInvisible } from '../../observability/logging/logger.js';
import { redactApiKeys } from '../../domain/api-key-text.js';
import { CLI_ACTOR } from '../../domain/caller.js';
import { withServices } from './command-services.js';
import { addKeyCommands } from './key-commands.js';
import { addOrganizationCommands } from './organization-commands.js';
import { asText, type RunWork } from './output.js';
import { addFollowCommand, addTranscriptCommands } from './transcript-commands.js';
import { addUsageCommands } from './usage-commands.js';

/**
 * Runs one command. The result is printed to standard output, an error as one line to standard error (one line per
 * invalid environment variable).
 *
 * @param platform the module of the `VideoPlatform` of `transcripts` and `archive`
 * @returns the exit code
 */
export async function runCommand(args: readonly string[], platform: Type<unknown>): Promise<number> {
  try {
    await program(platform).parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    for (const line of errorLines(error)) process.stderr.write(`error: ${line}\n`);
    return 1;
  }
}

function program(platform: Type<unknown>): Command {
  const root = new Command('channel-transcripts')
    .description('Manage organizations, API keys, usage and archive jobs, and read transcripts.')
    .version(VERSION, '--version', 'print the version')
    .option('--json', 'print the result as one JSON document')
    .configureHelp({ showGlobalOptions: true })
    // Errors are thrown, and printed by runCommand as one line.
    .configureOutput({ writeErr: () => undefined, outputError: () => undefined })
    .exitOverride();
  const run: RunWork = async (work, options) => {
    const result = await withServices(platform, work, options);
    if (!result) return;
    const { json, text = asText(json), failure } = result;
    process.stdout.write(`${root.opts<{ json?: boolean }>().json === true ? JSON.stringify(json) : text}\n`);
    if (failure) throw failure;
  };
  root
    .command('migrate')
    .description('apply pending migrations of the database, which every start of the service does as well')
    // Opening the services has applied them.
    .action(() => run(() => Promise.resolve({ json: { migrated: true }, text: 'The database is up to date.' })));
  addOrganizationCommands(root, run);
  addKeyCommands(root, run);
  addUsageCommands(root, run);
  addJobCommand(root, run);
  addTranscriptCommands(root, run);
  addFollowCommand(root, run);
  return root;
}

function addJobCommand(root: Command, run: RunWork): void {
  root
    .command('job')
    .description('cancel archive jobs')
    .command('cancel')
    .description('cancel a job of any organization; what was fetched stays charged and available')
    .argument('<job-id>')
    .action((id: string) =>
      run(async ({ jobs }) => {
        const { job, organizationId } = await jobs.cancel(null, id, CLI_ACTOR);
        const { state, summary } = job;
        const fetched = `${summary.fetched} of ${summary.total} videos were fetched and charged`;
        return { json: { ...job, organizationId }, text: `Job ${id} of ${organizationId} is ${state}: ${fetched}.` };
      }),
    );
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
