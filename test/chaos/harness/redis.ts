import { join } from 'node:path';
import { createClient } from '@redis/client';
import { freePort } from '../../free-port.js';
import { Program } from './program.js';
import { until } from './until.js';

/** A Redis without persistence, whose address stays the same across restarts. */
export class Redis {
  readonly url: string;
  private program: Program | undefined;

  private constructor(
    private readonly port: number,
    private readonly folder: string,
  ) {
    this.url = `redis://127.0.0.1:${port}`;
  }

  static async start(folder: string): Promise<Redis> {
    const redis = new Redis(await freePort(), folder);
    await redis.start();
    return redis;
  }

  async start(...settings: string[]): Promise<void> {
    const own = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const logFile = join(this.folder, 'redis.log');
    this.program = Program.start('redis-server', [...own, '--dir', this.folder, ...settings], { logFile });
    await until('Redis responds', async () => (await this.command('PING')) === 'PONG');
  }

  /** Sends one command on a connection of its own. */
  async command(...parts: (string | Buffer)[]): Promise<unknown> {
    const client = createClient({ url: this.url, socket: { reconnectStrategy: false, connectTimeout: 1_000 } });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return await client.sendCommand(parts);
    } finally {
      client.destroy();
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.program?.signal(signal);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.program?.stop(signal);
  }
}
