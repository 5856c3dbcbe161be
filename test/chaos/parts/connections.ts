import { readdir, readlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type Socket } from 'node:net';
import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { Chance } from '../harness/random.js';
import { ADMIN_TOKEN, Service, type Customer } from '../harness/service.js';
import { callers } from '../harness/sockets.js';
import { atOnce, until } from '../harness/until.js';
import { equal, nothing, type Part, type Promised } from '../chaos-run.js';

const DEADLINE_SECONDS = 10;
const AT_ONCE = 20;
const REQUESTS_MAX = 8;
const RESET_AFTER_MS_MAX = 60;
/** A reader may take nothing for 30 seconds, which is found out up to six seconds later. */
const STALLED_SECONDS_MAX = 45;
const WAVE_REQUESTS = 20;
/** So that few requests arrive at once: a connection on which a thousand wait is closed for that. */
const PADDING = { 'X-Padding': 'x'.repeat(2_000) };
const FEED_MS = 20;

/** Requests pipelined on connections that are reset at any moment, and readers of every route that take nothing. */
export const connections: Part = async ({ folder, database, short, seed, say }) => {
  const chance = new Chance(seed);
  const fakeYoutube = await startFakeYoutube();
  const service = await Service.start(folder, {
    DATABASE_URL: await database.create(),
    YOUTUBE_BASE_URL: fakeYoutube.url,
    REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS),
    CALLS_PER_KEY: '10',
    CALLS_PER_PROCESS: '200',
  });
  try {
    const customer = await service.customer();
    await service.get('/channels/@tidewater/transcripts', customer.key);
    await service.get('/docs/swagger-ui-bundle.js');
    const before = await openFiles(service);
    const count = short ? 300 : 3_000;
    const sent = await resets(service, customer, chance, count);
    say(`${count} connections reset`);
    const afterResets = await rest(service, customer, before, 'after the resets');
    const routes = routesOf(customer, PADDING);
    const stalled = short ? [] : await stalledReaders(service, customer, routes);
    const afterStalls = short ? [] : await rest(service, customer, before, 'after the stalled readers');
    const { exact } = await service.verified(customer.id);
    return {
      title: 'Connections',
      text:
        'Requests were pipelined on connections that were reset at any moment, some with garbage behind them; then readers of ' +
        'every route took nothing of what they asked for, each with a call queued behind.',
      columns: ['what', 'seen'],
      rows: [
        ['connections reset', `${count} with ${sent} requests`],
        [
          'stalled readers',
          short ? 'left out: they take longer than the short form has' : Object.keys(routes).join(', '),
        ],
      ],
      promised: [...afterResets, ...stalled, ...afterStalls, equal('`usage --verify`', exact, true)],
    };
  } finally {
    await service.stop('SIGKILL').catch(() => undefined);
    await fakeYoutube.close();
  }
};

function get(path: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries({ Host: 'a', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

function routesOf({ key }: Customer, padding: Record<string, string> = {}): Record<string, string> {
  const bearer = { ...padding, Authorization: `Bearer ${key}` };
  return {
    transcripts: get('/channels/@tidewater/transcripts', bearer),
    usage: get('/usage', bearer),
    'docs-json': get('/docs-json', padding),
    docs: get('/docs', padding),
    'a file of docs': get('/docs/swagger-ui-bundle.js', padding),
    metrics: get('/metrics', padding),
    health: get('/health/ready', padding),
    admin: get('/admin/organizations', { ...padding, Authorization: `Bearer ${ADMIN_TOKEN}` }),
    'an error 400': get('/channels/@tidewater/transcripts?page=2', bearer),
    'an error 401': get('/usage', padding),
    'an error 404': get('/nowhere', padding),
  };
}

/** @returns how many requests were sent */
async function resets(service: Service, customer: Customer, chance: Chance, count: number): Promise<number> {
  const { key } = customer;
  const port = Number(new URL(service.url).port);
  const routes = Object.values(routesOf(customer));
  let requests = 0;
  await atOnce(Array.from({ length: count }).keys(), AT_ONCE, async (index) => {
    const pipelined = Array.from({ length: 1 + chance.below(REQUESTS_MAX) }, (_, position) =>
      chance.often(0.6)
        ? get(`/channels/@bench-2x${1_000 + index * REQUESTS_MAX + position}/transcripts`, {
            Authorization: `Bearer ${key}`,
          })
        : chance.pick(routes),
    );
    if (chance.often(0.1)) pipelined.push('GARBAGE\r\n\r\n');
    requests += pipelined.length;
    const socket = connect({ port, host: '127.0.0.1' });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    if (chance.often(0.5)) socket.resume();
    socket.write(pipelined.join(''));
    await sleep(chance.below(RESET_AFTER_MS_MAX));
    socket.resetAndDestroy();
    await closed;
  });
  return requests;
}

async function stalledReaders(
  service: Service,
  { key }: Customer,
  routes: Readonly<Record<string, string>>,
): Promise<Promised[]> {
  const port = Number(new URL(service.url).port);
  const pid = service.program.child.pid ?? 0;
  const call = get('/channels/@tidewater/transcripts?limit=1', { Authorization: `Bearer ${key}` });
  const sockets = new Map<string, Socket>();
  for (const name of Object.keys(routes)) {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    socket.pause();
    await new Promise((resolve) => socket.once('connect', resolve));
    sockets.set(name, socket);
  }
  const ports = new Map([...sockets].map(([name, { localPort = 0 }]) => [name, localPort]));
  // As much as the service takes: it reads no further requests of a connection whose responses nobody reads.
  const feeding = setInterval(() => {
    for (const [name, socket] of sockets) {
      if (!socket.writable || socket.writableLength > 0) continue;
      socket.write((routes[name] ?? '').repeat(WAVE_REQUESTS) + call);
    }
  }, FEED_MS);
  let open: string[] = [];
  const look = async (): Promise<boolean> => {
    const held = await callers(pid, port);
    open = [...ports].filter(([, one]) => held?.has(one)).map(([name]) => name);
    return open.length === 0;
  };
  // Small responses need a while until they fill what the two ends of a connection hold.
  await until('They are closed', look, 2 * STALLED_SECONDS_MAX * 1_000, 500).catch(() => undefined);
  clearInterval(feeding);
  for (const socket of sockets.values()) socket.destroy();
  return [nothing('connections of stalled readers that stayed open', open)];
}

/** What must be as it was once nobody calls any more. */
async function rest(service: Service, { id }: Customer, openBefore: number, when: string): Promise<Promised[]> {
  const port = Number(new URL(service.url).port);
  const pid = service.program.child.pid ?? 0;
  let seen: Record<string, number> = {};
  const settled = async (): Promise<boolean> => {
    const inFlight = (await service.metrics()).get('ct_calls_in_flight') ?? -1;
    // The one that listens has no far end.
    const sockets = [...((await callers(pid, port)) ?? [])].filter((farEnd) => farEnd !== 0).length;
    const files = Math.max(0, (await openFiles(service)) - openBefore);
    seen = { inFlight, sockets, files };
    return Object.values(seen).every((count) => count === 0);
  };
  await until('All has ended', settled, (DEADLINE_SECONDS + 10) * 1_000, 250).catch(() => undefined);
  const { reserved } = await service.verified(id);
  return [
    equal(`calls in flight, connections and files more than before, ${when}`, Object.values(seen), [0, 0, 0]),
    equal(`reserved ${when}`, reserved, 0),
  ];
}

/** How many files of a disk it has open, without its connections. */
async function openFiles(service: Service): Promise<number> {
  const folder = `/proc/${service.program.child.pid ?? 0}/fd`;
  const names = await readdir(folder).catch(() => []);
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return links.filter((link) => link.startsWith('/')).length;
}
