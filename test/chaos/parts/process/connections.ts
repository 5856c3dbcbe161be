import { connect, type Socket } from 'node:net';
import { startFakeYoutube } from '../../../fake-youtube/fake-youtube.js';
import { ADMIN_TOKEN, Service, type Customer } from '../../harness/service.js';
import { settledState } from '../../harness/settled.js';
import { callers } from '../../harness/sockets.js';
import { until } from '../../harness/until.js';
import { atMost, equal, nothing, type Check, type ChaosRun } from '../../chaos-run.js';
import type { Findings } from './findings.js';

const DEADLINE_SECONDS = 10;
/** A request must arrive within 30 seconds, which is checked every few seconds. */
const CLOSED_SECONDS_MAX = 45;
/** A client may read nothing for 30 seconds, which is detected up to six seconds later. */
const READERS_SECONDS_MAX = 45;
const CALLS = 60;
const WAVE = 200;
const BIG = '/channels/@bench-60x1500/transcripts?limit=60';

interface MisbehavingClients {
  idle: number;
  writers: number;
  readers: number;
}

/** A misbehaving connection and what happened to it. */
class Guest {
  received = '';
  closedAfterMs: number | undefined;
  localPort = 0;
  readonly socket: Socket;
  private readonly openedAtMs = performance.now();

  constructor(port: number, first: string) {
    this.socket = connect({ port, host: '127.0.0.1' });
    this.socket.on('error', () => undefined);
    this.socket.once('connect', () => (this.localPort = this.socket.localPort ?? 0));
    this.socket.once('close', () => (this.closedAfterMs = performance.now() - this.openedAtMs));
    if (first !== '') this.socket.write(first);
  }

  listen(): this {
    this.socket.on(
      'data',
      (chunk: Buffer) => (this.received = (this.received + chunk.toString('latin1')).slice(0, 2_000)),
    );
    return this;
  }
}

/** Thousands of idle connections, and requests sent and responses read at a byte per second. */
export async function connections({ folder, database, short, say }: ChaosRun): Promise<Findings> {
  const fakeYoutube = await startFakeYoutube();
  const environment = { DATABASE_URL: await database.create(), YOUTUBE_BASE_URL: fakeYoutube.url };
  const service = await Service.start(folder, { ...environment, REQUEST_DEADLINE_SECONDS: String(DEADLINE_SECONDS) });
  const guests: Guest[] = [];
  try {
    const customer = await service.customer();
    const port = Number(new URL(service.url).port);
    await service.get(BIG, customer.key);
    await others(service, customer, 10);
    const quiet = await others(service, customer, CALLS);
    const clients: MisbehavingClients = short
      ? { idle: 300, writers: 20, readers: 4 }
      : { idle: 2_000, writers: 100, readers: 10 };
    const pid = service.program.child.pid ?? 0;
    const { groups, held } = await invite(port, pid, customer, clients, guests);
    const dribbling = setInterval(() => dribble(groups), 1_000);
    say(`${guests.length} misbehaving connections`);
    const loaded = await others(service, customer, CALLS);
    const kept = new Guest(port, `GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n`).listen();
    const closing = short ? [] : await closed(service, groups);
    clearInterval(dribbling);
    kept.socket.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(
      'The regular connection receives another response',
      () => kept.received.split('HTTP/1.1 200').length === 3,
    ).catch(() => undefined);
    guests.push(kept);
    for (const { socket } of guests) socket.destroy();
    const settled = await settledState(service, 'after the connections');
    const ms = (times: readonly number[], share: number): string =>
      (times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(0);
    return {
      rows: [
        [
          'misbehaving connections',
          `${clients.idle} idle, ${2 * clients.writers} that write and ${clients.readers} that read a byte a second`,
        ],
        [
          'other calls meanwhile',
          `median ${ms(loaded.ms, 0.5)} ms, slowest ${ms(loaded.ms, 1)} ms; without them ${ms(quiet.ms, 0.5)} and ${ms(quiet.ms, 1)} ms`,
        ],
        ...(short
          ? [
              ['closing of misbehaving connections', 'left out: it takes longer than the short form has'] as [
                string,
                string,
              ],
            ]
          : []),
      ],
      checks: [
        {
          name: 'misbehaving connections that are open in the service during these calls',
          observed: `${held} connections`,
          passed: held >= guests.length - 1,
        },
        equal('other calls during them, and those without a response', [loaded.ms.length, loaded.wrong], [CALLS, []]),
        atMost(
          'the slowest of these calls, at most its deadline and a second',
          Math.max(...loaded.ms) / 1000,
          DEADLINE_SECONDS + 1,
          's',
        ),
        ...closing,
        equal('a regular connection stays open', kept.received.split('HTTP/1.1 200').length - 1, 2),
        ...settled,
      ],
    };
  } finally {
    for (const { socket } of guests) socket.destroy();
    await service.stop('SIGKILL').catch(() => undefined);
    await fakeYoutube.close();
  }
}

type Groups = Record<'idle' | 'heads' | 'bodies' | 'readers', Guest[]>;

/**
 * Connects in waves that fit into the queue of connections that the service has not accepted yet: beyond it the kernel
 * drops some of them without notice.
 *
 * @param guests receives every connection, also when this fails
 * @returns the connections, and how many are open in the service
 */
async function invite(
  port: number,
  pid: number,
  { key }: Customer,
  { idle, writers, readers }: MisbehavingClients,
  guests: Guest[],
): Promise<{ groups: Groups; held: number }> {
  let held = 0;
  const connectAll = async (count: number, first: string): Promise<Guest[]> => {
    const group: Guest[] = [];
    while (group.length < count) {
      const wave = Array.from({ length: Math.min(WAVE, count - group.length) }, () => new Guest(port, first));
      group.push(...wave);
      guests.push(...wave);
      const areOpen = async (): Promise<boolean> => (held = (await callers(pid, port))?.size ?? 0) >= guests.length;
      await until('They are connected', areOpen, 5_000).catch(() => undefined);
    }
    return group;
  };
  const post = `POST /admin/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n`;
  const groups = {
    idle: await connectAll(idle, ''),
    heads: await connectAll(writers, 'GET /health/live HTTP/1.1\r\nHost: a\r\nX-Slow: '),
    bodies: await connectAll(writers, `${post}Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"name":"`),
    readers: await connectAll(readers, `GET ${BIG} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`),
  };
  for (const guest of [...groups.idle, ...groups.heads, ...groups.bodies]) guest.listen();
  // Without a data listener the socket is read explicitly.
  for (const { socket } of groups.readers) socket.pause();
  return { groups, held };
}

function dribble({ heads, bodies, readers }: Groups): void {
  for (const { socket } of [...heads, ...bodies]) if (socket.writable) socket.write('x');
  for (const { socket } of readers) socket.read(1);
}

/** Sequential calls of a regular client: their durations, sorted. */
async function others(service: Service, { key }: Customer, count: number): Promise<{ ms: number[]; wrong: string[] }> {
  const ms: number[] = [];
  const wrong: string[] = [];
  for (let call = 0; call < count; call += 1) {
    const path = call % 2 === 0 ? '/usage' : '/channels/@tidewater/transcripts?limit=3';
    const response = await service.get(path, key);
    ms.push(response.ms);
    if (response.status !== 200 || !response.whole) wrong.push(`${response.status} ${path}`);
  }
  return { ms: ms.sort((one, other) => one - other), wrong };
}

async function closed(service: Service, groups: Groups): Promise<Check[]> {
  const everybody = Object.values(groups).flat();
  const pid = service.program.child.pid ?? 0;
  const port = Number(new URL(service.url).port);
  // A paused reader does not see the end of its connection, so the service's side is checked.
  const ports = everybody.map(({ localPort }) => localPort);
  const remaining = async (): Promise<number> => {
    const open = await callers(pid, port);
    return ports.filter((one) => open?.has(one)).length;
  };
  const startedAtMs = performance.now();
  await until('They are closed', async () => (await remaining()) === 0, READERS_SECONDS_MAX * 1_000, 500).catch(
    () => undefined,
  );
  const lastSeconds = (performance.now() - startedAtMs) / 1000;
  const seen = everybody.filter((guest) => !groups.readers.includes(guest));
  const latestMs = Math.max(...seen.map(({ closedAfterMs }) => closedAfterMs ?? Number.POSITIVE_INFINITY));
  const without408 = (guests: readonly Guest[]): string[] =>
    guests
      .filter(({ received }) => !received.startsWith('HTTP/1.1 408'))
      .map(({ received }) => JSON.stringify(received.slice(0, 60)));
  return [
    equal('misbehaving connections that are still open in the service', await remaining(), 0),
    atMost('the last slow reader is closed after', lastSeconds, READERS_SECONDS_MAX, 's'),
    atMost('the last idle connection or slow writer is closed after', latestMs / 1000, CLOSED_SECONDS_MAX, 's'),
    nothing('slow writers without a 408 response', without408([...groups.heads, ...groups.bodies])),
  ];
}
