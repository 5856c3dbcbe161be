import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { atMost, equal, nothing, type Check } from '../chaos-run.js';
import { ledgerOf, type Ledger } from './ledger.js';
import type { Service } from './service.js';
import { socketsByFarEnd } from './sockets.js';
import { at } from './transcripts.js';
import { atOnce, until } from './until.js';

/** Longer than a lease after a short deadline. */
const SETTLED_MS = 30_000;
/** CONNECTIONS_MAX of the service's pool, and one session for its lock. */
const DATABASE_SOCKETS_MAX = 11;
const REDIS_SOCKETS_MAX = 4;
/** UPSTREAM_CONCURRENCY's default: connections are kept alive for as long as the platform allows. */
const PLATFORM_SOCKETS_MAX = 16;
/** Node warns of a leak above ten on one event of one emitter; the process itself has a few more. */
const LISTENERS_ON_ONE_MAX = 12;
const PAGE = 100;

/**
 * Checks the state of an idle service, whatever happened to it before: no call in flight, no reservation,
 * no socket except the kept-alive ones to its database, Redis and the platform, no leaked listeners, and an exact usage of every
 * organization. It waits for that state, so call it after the last client has disconnected and every fault has ended.
 *
 * @param name of the service, where a part has several
 */
export async function settledState(service: Service, name = 'the service'): Promise<Check[]> {
  let calls = Number.NaN;
  let sockets: string[] = [];
  await until(
    'No call runs and no client is connected',
    async () => {
      calls = (await service.metrics()).get('ct_calls_in_flight') ?? Number.NaN;
      sockets = await extraSockets(service);
      return calls === 0 && sockets.length === 0;
    },
    SETTLED_MS,
    200,
  ).catch(() => undefined);
  let ledgers = new Map<string, Ledger>();
  const reserved = (): number => [...ledgers.values()].reduce((sum, one) => sum + one.reserved, 0);
  await until(
    'Nothing is reserved',
    async () => (ledgers = await ledgersOf(service)) && reserved() === 0,
    SETTLED_MS,
    1_000,
  ).catch(() => undefined);
  const inexact = [...ledgers].flatMap(([id, { exact }]) => (exact ? [] : [id]));
  const { most, where } = await service.listeners();
  return [
    equal(`at rest, ${name}: ct_calls_in_flight`, calls, 0),
    equal(`at rest, ${name}: transcripts reserved, over all organizations`, reserved(), 0),
    {
      name: `at rest, ${name}: \`usage --verify\` is exact for every organization`,
      observed: `${ledgers.size - inexact.length} of ${ledgers.size}${inexact.length > 0 ? `, not for ${inexact.slice(0, 3).join(', ')}` : ''}`,
      passed: inexact.length === 0 && ledgers.size > 0,
    },
    nothing(
      `at rest, ${name}: sockets other than the kept-alive ones to its database, Redis and the platform`,
      sockets,
    ),
    atMost(`at rest, ${name}: listeners on one event of one emitter`, most, LISTENERS_ON_ONE_MAX, `(${where})`),
  ];
}

async function ledgersOf(service: Service): Promise<Map<string, Ledger>> {
  const ledgers = new Map<string, Ledger>();
  let after: unknown = null;
  do {
    const query = `limit=${PAGE}${typeof after === 'string' ? `&after=${encodeURIComponent(after)}` : ''}`;
    const page = await service.admin('GET', `/organizations?${query}`);
    const organizations = at(page, 'organizations');
    const ids = Array.isArray(organizations) ? organizations.map((one) => String(at(one, 'id'))) : [];
    await atOnce(ids, 4, async (id) => void ledgers.set(id, await ledgerOf(service, id)));
    after = at(page, 'next');
  } while (typeof after === 'string');
  return ledgers;
}

/** By the remote address; empty where there is no /proc. */
async function extraSockets({ program, environment }: Service): Promise<string[]> {
  const counts = await socketsByFarEnd(program.child.pid ?? 0);
  if (!counts) return [];
  const allowed = new Map<string, number>();
  const allow = (url: string | undefined, count: number): void => {
    if (url === undefined) return;
    const { hostname, port } = new URL(url);
    allowed.set(`${hostname}:${port}`, count);
  };
  allow(environment['DATABASE_URL'] ?? (await embeddedDatabase(environment)), DATABASE_SOCKETS_MAX);
  allow(environment['REDIS_URL'], REDIS_SOCKETS_MAX);
  allow(environment['YOUTUBE_BASE_URL'], PLATFORM_SOCKETS_MAX);
  allow(environment['NATS_URL'], 1);
  return [...counts].flatMap(([end, count]) => (count > (allowed.get(end) ?? 0) ? [`${count} to ${end}`] : []));
}

/** Where the embedded PostgreSQL listens: the fourth line of its lock file is its port. */
async function embeddedDatabase({ DATA_DIR }: Record<string, string>): Promise<string | undefined> {
  if (DATA_DIR === undefined) return undefined;
  const file = join(DATA_DIR, 'postgres/postmaster.pid');
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n');
  return lines[3] ? `postgres://127.0.0.1:${lines[3]}` : undefined;
}
