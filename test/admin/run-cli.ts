import { fork, spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

export interface CliResult {
  code: unknown;
  output: string;
  errorOutput: string;
}

/** Starts the built admin command in its own process, with no other variables than the given. */
export function startCli(
  args: readonly string[],
  variables: Record<string, string>,
): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(process.execPath, [join(import.meta.dirname, '../../dist/cli.js'), ...args], {
    env: { PATH: process.env['PATH'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs the built admin command in its own process, with no other variables than the given. */
export async function runCli(args: readonly string[], variables: Record<string, string>): Promise<CliResult> {
  const child = startCli(args, variables);
  const closed: Promise<unknown[]> = once(child, 'close');
  const [output, errorOutput, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output, errorOutput };
}

/**
 * Ends all other connections to a database. On a busy machine PostgreSQL runs the last statement of a killed process, such as
 * its next claim, when that is gone already.
 */
export async function endOtherConnections(database: { query(statement: string): Promise<unknown> }): Promise<void> {
  await database.query(`SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`);
}

/**
 * One process that runs admin commands of the build one after another. For tests of what the commands do: a process for
 * each command takes a second of CPU.
 */
export class CliSession {
  private readonly child: ChildProcess = fork(join(import.meta.dirname, 'programs/cli-session.mjs'), { execArgv: [] });

  private running: Promise<CliResult> | undefined;

  /** Starts a command. The one before must have ended. */
  run(args: readonly string[], variables: Record<string, string>): Promise<CliResult> {
    this.child.send({ args, variables: { PATH: process.env['PATH'], ...variables } });
    const ended = once(this.child, 'exit').then((): never => {
      throw new Error(`The session ended during: ${args.join(' ')}`);
    });
    const result = Promise.race([once(this.child, 'message'), ended]) as Promise<[CliResult]>;
    return (this.running = result.then(([one]) => one));
  }

  /** Sends a signal to the command that runs, which must handle it. @returns its result */
  signal(signal: 'SIGINT' | 'SIGTERM'): Promise<CliResult> {
    this.child.send({ signal });
    return this.running ?? Promise.reject(new Error('No command was started.'));
  }

  close(): void {
    this.child.kill();
  }
}
