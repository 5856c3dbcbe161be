import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

export interface CliResult {
  code: unknown;
  output: string;
  errorOutput: string;
}

/** Runs the built admin command in a process of its own, with no other variables than the given. */
export async function runCli(args: readonly string[], variables: Record<string, string>): Promise<CliResult> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../dist/cli.js'), ...args], {
    env: { PATH: process.env['PATH'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed: Promise<unknown[]> = once(child, 'close');
  const [output, errorOutput, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output, errorOutput };
}
