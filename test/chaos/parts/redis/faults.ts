import { createClient } from '@redis/client';
import type { Redis } from '../../harness/redis.js';

/** A fault of a Redis that can be started and ended. */
export interface RedisFault {
  name: string;
  /** Minimum duration in milliseconds. */
  lastsMs: number;
  /** Whether Redis loses entries, so that a repeated call can be charged again. */
  evicts: boolean;
  strike(): Promise<void>;
  heal(): Promise<void>;
}

const OTHERS_PASSWORD = 'not-the-one-that-the-service-has';

const LASTS_MS = 300;
/** Longer than a client keeps a silent connection. */
const LASTS_LONG_MS = 6_500;

export function redisFaults(redis: Redis): RedisFault[] {
  const command = async (...parts: string[]): Promise<void> => void (await redis.command(...parts));
  const nothing = (): Promise<void> => Promise.resolve();
  const freeze = (): Promise<void> => Promise.resolve(redis.signal('SIGSTOP'));
  const thaw = (): Promise<void> => Promise.resolve(redis.signal('SIGCONT'));
  const faults: readonly (Omit<RedisFault, 'lastsMs' | 'evicts'> & Partial<RedisFault>)[] = [
    { name: 'stopped', strike: () => redis.stop(), heal: () => redis.start() },
    { name: 'killed', strike: () => redis.stop('SIGKILL'), heal: () => redis.start() },
    {
      name: 'restarted empty',
      evicts: true,
      strike: async () => {
        await redis.stop();
        await redis.start();
      },
      heal: nothing,
    },
    { name: 'frozen', strike: freeze, heal: thaw },
    { name: 'frozen for long', lastsMs: LASTS_LONG_MS, strike: freeze, heal: thaw },
    {
      name: 'full',
      strike: async () => {
        await command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
        await command('CONFIG', 'SET', 'maxmemory', '1mb');
      },
      heal: () => command('CONFIG', 'SET', 'maxmemory', '0'),
    },
    {
      name: 'read-only',
      strike: () => command('REPLICAOF', '127.0.0.1', '1'),
      heal: () => command('REPLICAOF', 'NO', 'ONE'),
    },
    {
      name: 'without the permission to write',
      strike: () => command('ACL', 'SETUSER', 'default', '-set'),
      heal: () => command('ACL', 'SETUSER', 'default', '+set'),
    },
    {
      name: 'evicting',
      evicts: true,
      strike: async () => {
        await command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
        await command('CONFIG', 'SET', 'maxmemory', String((await usedBytes(redis)) + 20_000));
      },
      heal: () => command('CONFIG', 'SET', 'maxmemory', '0'),
    },
    {
      name: 'connections cut',
      strike: () => command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
      heal: nothing,
    },
    {
      name: 'another password',
      strike: async () => {
        await command('CONFIG', 'SET', 'requirepass', OTHERS_PASSWORD);
        // Open connections stay authenticated: the password applies to new connections only.
        await withPassword(redis, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      },
      heal: () => withPassword(redis, 'CONFIG', 'SET', 'requirepass', ''),
    },
    { name: 'emptied', strike: () => command('FLUSHALL'), heal: nothing },
  ];
  return faults.map((fault) => ({ lastsMs: LASTS_MS, evicts: false, ...fault }));
}

async function usedBytes(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(String(await redis.command('INFO', 'memory')))?.[1]);
}

async function withPassword(redis: Redis, ...parts: string[]): Promise<void> {
  const client = createClient({
    url: redis.url,
    password: OTHERS_PASSWORD,
    socket: { reconnectStrategy: false, connectTimeout: 1_000 },
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.sendCommand(parts);
  } finally {
    client.destroy();
  }
}
