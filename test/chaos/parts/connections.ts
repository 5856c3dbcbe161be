import { readdir, readlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type Socket } from 'node:net';
import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { RandomSource } from '../harness/random.js';
import { ADMIN_TOKEN, Service, type Customer } from '../harness/service.js';
import { callers } from '../harness/sockets.js';
import { atOnce, until } from '../harness/until.js';
import { equal, nothing, type Part, type Check } from '../chaos-run.js';

const DEADLINE_SECONDS = 10;
const AT_ONCE = 20;
const REQUESTS_MAX = 8;
const RESET_AFTER_MS_MAX = 60;
/** A client may read nothing for 30 seconds, which is detected up to six seconds later. */
const STALLED_SECONDS_MAX = 45;
const WAVE_REQUESTS = 20;
/** Few enough requests per connection: the service closes one on which a thousand wait. */
const PADDING = { 'X-Padding': 'x'.repeat(2_000) };
const FEED_MS = 20;

/** Pipelined requests on connections that are reset at any moment, and clients of every route that read nothing. */
export const connections: Part = async ({ folder, database, short, seed, say }) => {
  const random = new RandomSource(seed);
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
    const sent = await resets(service, customer, random, count);
    say(`${count} connections reset`);
    const afterResets = await rest(service, customer, before, 'after the resets');
    const routes = routesOf(customer, PADDING);
    const stalled = short ? [] : await stalledReaders(service, customer, routes);
    const afterStalls = short ? [] : await rest(service, customer, before, 'after the stalled readers');
    const { exact } = await service.verified(customer.id);
    return {
      text:
        'Requests are pipelined on connections that are reset at any moment, some followed by garbage; then clients of ' +
        'every route read nothing of their responses, each with another call queued.',
      columns: ['fault', 'result'],
      rows: [
        ['connections reset', `${count} with ${sent} requests`],
        [
          'stalled readers',
          short ? 'left out: they take longer than the short form has' : Object.keys(routes).join(', '),
        ],
      ],
      checks: [...afterResets, ...stalled, ...afterStalls, equal('`usage --verify`', exact, true)],
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

/** @returns the number of requests sent */
async function resets(service: Service, customer: Customer, random: RandomSource, count: number): Promise<number> {
  const { key } = customer;
  const port = Number(new URL(service.url).port);
  const routes = Object.values(routesOf(customer));
  let requests = 0;
  await atOnce(Array.from({ length: count }).keys(), AT_ONCE, async (index) => {
    const pipelined = Array.from({ length: 1 + random.below(REQUESTS_MAX) }, (_, position) =>
      random.often(0.6)
        ? get(`/channels/@bench-2x${1_000 + index * REQUESTS_MAX + position}/transcripts`, {
            Authorization: `Bearer ${key}`,
          })
        : random.pick(routes),
    );
    if (random.often(0.1)) pipelined.push('GARBAGE\r\n\r\n');
    requests += pipelined.length;
    const socket = connect({ port, host: '127.0.0.1' });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    if (random.often(0.5)) socket.resume();
    socket.write(pipelined.join(''));
    await sleep(random.below(RESET_AFTER_MS_MAX));
    socket.resetAndDestroy();
    await closed;
  });
  return requests;
}

async function stalledReaders(
  service: Service,
  { key }: Customer,
  routes: Readonly<Record<string, string>>,
): Promise<Check[]> {
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
  // As much as the service accepts: it stops reading from a connection whose responses are not read.
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
  // Small responses take a while to fill the socket buffers of both ends.
  await until('They are closed', look, 2 * STALLED_SECONDS_MAX * 1_000, 500).catch(() => undefined);
  clearInterval(feeding);
  for (const socket of sockets.values()) socket.destroy();
  return [nothing('connections of stalled readers that stay open', open)];
}

/** Checks that the idle service has returned to its initial state. */
async function rest(service: Service, { id }: Customer, openBefore: number, when: string): Promise<Check[]> {
  const port = Number(new URL(service.url).port);
  const pid = service.program.child.pid ?? 0;
  let seen: Record<string, number> = {};
  const settled = async (): Promise<boolean> => {
    const inFlight = (await service.metrics()).get('ct_calls_in_flight') ?? -1;
    // The listening socket has no remote address.
    const sockets = [...((await callers(pid, port)) ?? [])].filter((farEnd) => farEnd !== 0).length;
    const files = Math.max(0, (await openFiles(service)) - openBefore);
    seen = { inFlight, sockets, files };
    return Object.values(seen).every((count) => count === 0);
  };
  await until('All has ended', settled, (DEADLINE_SECONDS + 10) * 1_000, 250).catch(() => undefined);
  const { reserved } = await service.verified(id);
  return [
    equal(`additional calls in flight, connections and files ${when}`, Object.values(seen), [0, 0, 0]),
    equal(`reserved ${when}`, reserved, 0),
  ];
}

/** The number of its open files, without sockets. */
async function openFiles(service: Service): Promise<number> {
  const folder = `/proc/${service.program.child.pid ?? 0}/fd`;
  const names = await readdir(folder).catch(() => []);
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return links.filter((link) => link.startsWith('/')).length;
}
