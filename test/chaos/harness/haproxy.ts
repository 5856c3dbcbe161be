import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../free-port.js';
import { Program, PROJECT } from './program.js';
import { until } from './until.js';

/** The ports of this machine on which two servers of a kind listen, of which one is the primary. */
export type Pair = readonly [number, number];

/** HAProxy with `deploy/haproxy.cfg`, in which only the addresses are replaced. */
export class HaProxy {
  private constructor(
    private readonly program: Program,
    readonly postgresPort: number,
    readonly valkeyPort: number,
  ) {}

  /** Starts it; the servers may start later. Needs the program `haproxy`. */
  static async start(folder: string, postgres: Pair, valkey: Pair): Promise<HaProxy> {
    const own = join(folder, 'haproxy');
    await mkdir(own, { recursive: true });
    const [postgresPort, valkeyPort] = [await freePort(), await freePort()];
    const text = replaceOnce(await readFile(join(PROJECT, 'deploy/haproxy.cfg'), 'utf8'), [
      ['bind :5432', `bind 127.0.0.1:${postgresPort}`],
      ['bind :6379', `bind 127.0.0.1:${valkeyPort}`],
      ['postgres-a:5432', `127.0.0.1:${postgres[0]}`],
      ['postgres-b:5432', `127.0.0.1:${postgres[1]}`],
      ['valkey-a:6379', `127.0.0.1:${valkey[0]}`],
      ['valkey-b:6379', `127.0.0.1:${valkey[1]}`],
    ]);
    const file = join(own, 'haproxy.cfg');
    await writeFile(file, text);
    const logFile = join(own, 'haproxy.log');
    const program = Program.start('haproxy', ['-db', '-f', file], { logFile });
    await until('HAProxy has checked its servers', async () => {
      if (program.hasEnded) throw new Error(await readFile(logFile, 'utf8'));
      return (await readFile(logFile, 'utf8')).includes('DOWN');
    });
    return new HaProxy(program, postgresPort, valkeyPort);
  }

  async stop(): Promise<void> {
    await this.program.stop();
  }
}

/** @throws when the configuration does not contain a text exactly once */
function replaceOnce(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((changed, [from, to]) => {
    const [before, after, ...more] = changed.split(from);
    if (before === undefined || after === undefined || more.length > 0) {
      throw new Error(`deploy/haproxy.cfg does not contain "${from}" exactly once.`);
    }
    return before + to + after;
  }, text);
}
