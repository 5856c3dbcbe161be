import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Program, PROJECT } from './program.js';
import { until } from './until.js';

const START_MS = 60_000;

/** The fake YouTube in a process of its own, for a part whose large responses would delay the parts that run beside it. */
export class FakeYoutubeProcess {
  private constructor(
    private readonly program: Program,
    readonly url: string,
  ) {}

  /** Starts it on a free port and waits until it listens. */
  static async start(folder: string): Promise<FakeYoutubeProcess> {
    const logFile = join(folder, 'fake-youtube.log');
    const main = join(PROJECT, 'dist-tools/test/fake-youtube/main.js');
    const program = Program.start(process.execPath, [main], { logFile });
    let url = '';
    await until(
      'The fake YouTube listens',
      async () => {
        if (program.hasEnded) return true;
        url = /listens at (\S+)/.exec(await readFile(logFile, 'utf8'))?.[1] ?? '';
        return url !== '';
      },
      START_MS,
    );
    if (url === '') throw new Error(`The fake YouTube did not start:\n${await readFile(logFile, 'utf8')}`);
    return new FakeYoutubeProcess(program, url);
  }

  async stop(): Promise<void> {
    await this.program.stop();
  }
}
