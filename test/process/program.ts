import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { refuseSecrets } from '../harness/plaintext-keys.js';

const PROJECT = join(import.meta.dirname, '../..');
const START_MS = 100_000;

interface ProgramEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A program of the built service in a process of its own. */
export class Program {
  stdout = '';
  stderr = '';
  /** Rejects when the service has shown a key. */
  readonly exited: Promise<ProgramEnd>;

  private constructor(
    readonly child: ChildProcess,
    file: string,
  ) {
    child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    const exited = new Promise<ProgramEnd>((resolve) =>
      child.once('close', (code, signal) => resolve({ code, signal })),
    );
    this.exited = exited.then((end) => {
      // A command shows the key that it makes; the service never shows one.
      if (file === 'main.js') refuseSecrets({ output: this.stdout + this.stderr });
      return end;
    });
  }

  /** Runs `dist/<file>` with these variables and no others of the service's. */
  static run(file: 'main.js' | 'cli.js', variables: Record<string, string>, ...args: string[]): Program {
    return Program.runIn(PROJECT, file, variables, ...args);
  }

  /** Runs a copy of the programs in another folder. */
  static runIn(
    folder: string,
    file: 'main.js' | 'cli.js',
    variables: Record<string, string>,
    ...args: string[]
  ): Program {
    const { PATH = '', HOME = '' } = process.env;
    const child = spawn(process.execPath, [join(folder, 'dist', file), ...args], {
      cwd: folder,
      // Most tests have no balancer, so the shutdown does not wait for one to see the readiness.
      env: { PATH, HOME, HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY_SECONDS: '0', ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new Program(child, file);
  }

  /** Where the service listens, once it does; rejects when it ends before. */
  async url(): Promise<string> {
    const ended = this.exited.then(({ code }) => {
      throw new Error(`Ended with ${code} before it listened: ${this.stderr}${this.stdout}`);
    });
    let timer: NodeJS.Timeout | undefined;
    const listening = new Promise<string>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error('It did not start in time.')), START_MS);
      const look = (): void => {
        const url = /"event":"listening","url":"([^"]+)"/.exec(this.stdout)?.[1];
        if (url) resolve(url);
      };
      this.child.stdout?.on('data', look);
      look();
    });
    return Promise.race([listening, ended]).finally(() => clearTimeout(timer));
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<ProgramEnd> {
    this.child.kill(signal);
    return this.exited;
  }
}

/** A folder for one test, removed afterwards. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'channel-transcripts-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 10 }) };
}
