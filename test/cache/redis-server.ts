import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createClient } from '@redis/client';
import { freePort } from '../harness/free-port.js';
import { temporaryFolder } from '../process/program.js';
import { isInstalled } from '../harness/programs.js';

const PROGRAM = 'redis-server';

export const redisIsInstalled = isInstalled(PROGRAM);

/** A Redis of one test file, without persistence, whose address stays the same when it is killed and started again. */
export class RedisServer {
  readonly url: string;
  private readonly folder = temporaryFolder();
  private child: ChildProcess | undefined;

  private constructor(private readonly port: number) {
    this.url = `redis://127.0.0.1:${port}`;
  }

  /** An unused address. */
  static async reserve(): Promise<RedisServer> {
    return new RedisServer(await freePort());
  }

  static async start(): Promise<RedisServer> {
    const server = await RedisServer.reserve();
    await server.start();
    return server;
  }

  async start(more: Record<string, string> = {}): Promise<void> {
    const settings = {
      ...more,
      port: String(this.port),
      bind: '127.0.0.1',
      save: '',
      appendonly: 'no',
      dir: this.folder.path,
    };
    const child = spawn(
      PROGRAM,
      Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    this.child = child;
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.once('close', () => reject(new Error(`${PROGRAM} ended before it was ready: ${output}`)));
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes('Ready to accept connections')) resolve();
      });
    });
  }

  /** Whether it was started, and not killed since. */
  get running(): boolean {
    return this.child !== undefined;
  }

  /** As when its machine fails. */
  async kill(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (!child) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }

  /** Connections stay open without responses until `thaw`. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  /** Sends one command on a connection of its own. */
  async command(...args: (string | Buffer)[]): Promise<unknown> {
    const client = createClient({ url: this.url, socket: { reconnectStrategy: false } });
    client.on('error', () => undefined);
    await client.connect();
    return client.sendCommand(args).finally(() => client.destroy());
  }

  async close(): Promise<void> {
    await this.kill();
    this.folder.remove();
  }
}
