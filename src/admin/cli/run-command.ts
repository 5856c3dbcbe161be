import { Command, CommanderError } from 'commander';
import { EnvironmentError } from '../../config/environment.js';
import { escapeInvisible } from '../../http/escape-invisible.js';
import { redactApiKeys } from '../../organizations/api-key.js';
import { addKeyCommands } from './key-commands.js';
import { addOrganizationCommands } from './organization-commands.js';
import { addUsageCommands } from './usage-commands.js';

/**
 * Runs one admin command. Its answer goes to standard output; whatever goes wrong becomes a line on standard error (a
 * line for each fault of the environment).
 *
 * @returns the exit code
 */
export async function runCommand(args: readonly string[]): Promise<number> {
  try {
    await program().parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    for (const line of faultLines(error)) process.stderr.write(`error: ${line}\n`);
    return 1;
  }
}

function program(): Command {
  const root = new Command('channel-transcripts')
    .description('Admin commands of the service.')
    .option('--json', 'print one JSON document')
    .configureHelp({ showGlobalOptions: true })
    // Faults are thrown and printed in one place, as one line.
    .configureOutput({ writeErr: () => undefined, outputError: () => undefined })
    .exitOverride();
  addOrganizationCommands(root);
  addKeyCommands(root);
  addUsageCommands(root);
  return root;
}

function faultLines(error: unknown): string[] {
  if (error instanceof EnvironmentError) return error.faults.map(oneLine);
  if (error instanceof CommanderError) {
    const missing = error.code === 'commander.help';
    return [missing ? 'a command is missing; --help lists them' : oneLine(error.message.replace(/^error: /, ''))];
  }
  return [oneLine(error instanceof Error ? error.message || error.name : String(error))];
}

/** An error can repeat what was typed, which can be a key. */
function oneLine(text: string): string {
  return escapeInvisible(redactApiKeys(text).replace(/\s+/g, ' ').trim());
}
