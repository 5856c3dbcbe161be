import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../process/program.js';
import { isInstalled } from '../harness/programs.js';

const PROGRAM = 'nats-server';

const installed = isInstalled(PROGRAM);
// Continuous integration installs it: there its absence is a failure, not a reason to skip.
export const natsIsInstalled = installed || process.env['CI'] !== undefined;

/** A NATS server of one test file. */
export class NatsBroker {
  private constructor(
    readonly url: string,
    private readonly child: ChildProcess,
    private readonly folder: { remove(): void },
  ) {}

  /** @param settings lines of its configuration file */
  static async start(settings: readonly string[] = []): Promise<NatsBroker> {
    const folder = temporaryFolder();
    const file = join(folder.path, 'nats.conf');
    writeFileSync(file, ['host: "127.0.0.1"', 'port: -1', ...settings].join('\n'));
    const child = spawn(PROGRAM, ['--config', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    let output = '';
    const url = await new Promise<string>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', () => reject(new Error(`${PROGRAM} ended before it was ready: ${output}`)));
      child.stderr.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const port = /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(output)?.[1];
        if (port !== undefined && output.includes('Server is ready')) resolve(`nats://127.0.0.1:${port}`);
      });
    });
    return new NatsBroker(url, child, folder);
  }

  async close(): Promise<void> {
    const closed = once(this.child, 'close');
    this.child.kill('SIGKILL');
    await closed;
    this.folder.remove();
  }
}
