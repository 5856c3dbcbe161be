import { spawn, type ChildProcess } from 'node:child_process';
import { openSync, closeSync } from 'node:fs';
import { join } from 'node:path';

/** The project, seen from where the tools are built to. */
export const PROJECT = join(import.meta.dirname, '../../../..');

const STOP_MS = 60_000;

const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

export interface ProgramEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface ProgramOptions {
  environment?: Record<string, string>;
  /** Where both outputs go. */
  logFile: string;
  /** With a channel for messages. */
  ipc?: boolean;
  cwd?: string;
}

/** A program in a process of its own, which does not outlive this one. */
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
          // Ctrl-C reaches the chaos tests alone, which then stops its programs.
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

  /** Asks it to end and waits; one that does not end is killed, and that is an error. */
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
