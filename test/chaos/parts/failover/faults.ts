import { setTimeout as sleep } from 'node:timers/promises';
import { cut, heal, type Link } from '../../harness/packet-filter.js';
import { REPLICATION_ADDRESS, type PostgresPair } from '../../harness/postgres-pair.js';
import type { RedisPair } from './redis-pair.js';

const CUT_MS = 4_000;

/** The failure of a server or of a network, with what an operator does about it. */
export interface Failover {
  name: string;
  /** Takes the server or the network away, and orders the promotion or restores the network. */
  strike(): Promise<void>;
  /** Makes the failed server a standby or replica again, without load. */
  repair(): Promise<void>;
  /** Whether calls may be refused meanwhile. */
  refuses: boolean;
  /** Whether it drops packets. */
  cuts: boolean;
}

/** The primary of PostgreSQL fails and the standby is promoted; or a network is cut for four seconds. */
export function databaseFailovers(pair: PostgresPair): Failover[] {
  const renew = async (): Promise<void> => {
    await pair.removeStandby();
    await pair.attachStandby();
  };
  let isolated: Link = { port: 0 };
  const cutFor = async (link: Link): Promise<void> => {
    cut(link);
    await sleep(CUT_MS);
    heal(link);
  };
  return [
    {
      name: 'PostgreSQL: the primary is killed, the standby promoted',
      strike: async () => {
        await pair.primary.kill();
        await pair.promote();
      },
      repair: renew,
      refuses: true,
      cuts: false,
    },
    {
      name: 'PostgreSQL: the primary freezes, the standby is promoted',
      strike: async () => {
        await pair.primary.freeze();
        await pair.promote();
      },
      repair: renew,
      refuses: true,
      cuts: false,
    },
    {
      name: 'PostgreSQL: the network of the primary is cut, the standby promoted, the old primary stopped, the network healed',
      strike: async () => {
        isolated = { port: pair.primaryPort };
        cut(isolated);
        await pair.promote();
      },
      repair: async () => {
        await pair.removeStandby();
        heal(isolated);
        await pair.attachStandby();
      },
      refuses: true,
      cuts: true,
    },
    {
      name: `PostgreSQL: the network of the primary is cut for ${CUT_MS / 1000} s`,
      strike: () => cutFor({ port: pair.primaryPort }),
      repair: () => Promise.resolve(),
      refuses: true,
      cuts: true,
    },
    {
      name: `PostgreSQL: the network between primary and standby is cut for ${CUT_MS / 1000} s`,
      strike: () => cutFor({ port: pair.primaryPort, address: REPLICATION_ADDRESS }),
      repair: () => Promise.resolve(),
      refuses: true,
      cuts: true,
    },
  ];
}

/** The master of Redis fails and its replica is promoted. */
export function cacheFailovers(pair: RedisPair): Failover[] {
  let isolated: Link = { port: 0 };
  return [
    {
      name: 'Redis: the master is killed, the replica promoted',
      strike: async () => {
        await pair.master.stop('SIGKILL');
        await pair.promote();
      },
      repair: () => pair.renewReplica(),
      refuses: false,
      cuts: false,
    },
    {
      name: 'Redis: the master freezes, the replica is promoted',
      strike: async () => {
        pair.master.signal('SIGSTOP');
        await pair.promote();
      },
      repair: () => pair.renewReplica(),
      refuses: false,
      cuts: false,
    },
    {
      name: 'Redis: the network of the master is cut, the replica promoted, the old master stopped, the network healed',
      strike: async () => {
        isolated = { port: pair.masterPort };
        cut(isolated);
        await pair.promote();
      },
      repair: async () => {
        await pair.stopOld();
        heal(isolated);
        await pair.renewReplica();
      },
      refuses: false,
      cuts: true,
    },
  ];
}
