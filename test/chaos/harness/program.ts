import { spawn, type ChildProcess } from 'node:child_process';
import { openSync, closeSync } from 'node:fs';
import { join } from 'node:path';

/** The project's root, relative to the output directory of the tools. */
export const PROJECT = join(import.meta.dirname, '../../../..');

const STOP_MS = 60_000;

const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

export interface ProgramEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
}

interface ProgramOptions {
  environment?: Record<string, string>;
  /** The file that receives both outputs. */
  logFile: string;
  /** With an IPC channel. */
  ipc?: boolean;
  cwd?: string;
}

/** A child process that is killed when this process ends. */
export class Program {
  readonly ended: Promise<ProgramEnd>;

  private constructor(readonly child: ChildProcess) {
    running.add(child);
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        running.delete(child);
        resolve({ code, signal });
      });
    });
    this.ended.catch(() => undefined);
  }

  static start(command: string, args: readonly string[], options: ProgramOptions): Program {
    const { PATH = '', HOME = '' } = process.env;
    const log = openSync(options.logFile, 'a');
    try {
      return new Program(
        spawn(command, [...args], {
          env: { PATH, HOME, ...options.environment },
          stdio: options.ipc ? ['ignore', log, log, 'ipc'] : ['ignore', log, log],
          // Ctrl-C reaches only the chaos tests, which then stop their programs.
          detached: true,
          ...(options.cwd !== undefined && { cwd: options.cwd }),
        }),
      );
    } finally {
      closeSync(log);
    }
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Terminates it and waits; throws when it had to be killed. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<ProgramEnd> {
    if (!this.hasEnded) this.child.kill(signal);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.child.kill('SIGKILL');
    }, STOP_MS);
    const end = await this.ended;
    clearTimeout(timer);
    if (late) throw new Error(`${this.child.spawnfile} did not end within ${STOP_MS / 1000} s of ${signal}.`);
    return end;
  }
}
