import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from '../../harness/redis.js';
import { until } from '../../harness/until.js';

/** A Redis and its replica, which exchange their roles with each failover. */
export class RedisPair {
  private constructor(
    public master: Redis,
    private replica: Redis,
  ) {}

  static async start(folder: string): Promise<RedisPair> {
    const start = async (name: string): Promise<Redis> => {
      await mkdir(join(folder, name), { recursive: true });
      return Redis.start(join(folder, name));
    };
    const pair = new RedisPair(await start('redis-a'), await start('redis-b'));
    await pair.follow();
    return pair;
  }

  get ports(): readonly [number, number] {
    return [portOf(this.master), portOf(this.replica)];
  }

  get masterPort(): number {
    return portOf(this.master);
  }

  /** Promotes the replica. The old master must be stopped before it can be reached again. */
  async promote(): Promise<void> {
    await this.replica.command('REPLICAOF', 'NO', 'ONE');
    [this.master, this.replica] = [this.replica, this.master];
  }

  async stopOld(): Promise<void> {
    await this.replica.stop('SIGKILL');
  }

  /** Starts the other server anew, as the replica. */
  async renewReplica(): Promise<void> {
    await this.stopOld();
    await this.replica.start();
    await this.follow();
  }

  async stop(): Promise<void> {
    for (const redis of [this.master, this.replica]) await redis.stop('SIGKILL');
  }

  private async follow(): Promise<void> {
    // Without the pause in which a master waits for further replicas.
    await this.master.command('CONFIG', 'SET', 'repl-diskless-sync-delay', '0');
    await this.replica.command('REPLICAOF', '127.0.0.1', String(this.masterPort));
    await until('The replica follows', async () =>
      String(await this.replica.command('INFO', 'replication')).includes('master_link_status:up'),
    );
  }
}

function portOf({ url }: Redis): number {
  return Number(new URL(url).port);
}
