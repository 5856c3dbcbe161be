import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { RandomSource } from '../harness/random.js';
import { Service, type Customer, type Resources } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { callers as callersOf } from '../harness/sockets.js';
import { atOnce, until } from '../harness/until.js';
import { atMost, equal, nothing, type Part, type Check } from '../chaos-run.js';
import { Caller } from './messages/caller.js';
import { HOSTILE_FRAMES } from './messages/hostile-frames.js';
import { natsFlood } from './messages/nats-flood.js';

const REFUSED = 60_000;
const REFUSED_SHORT = 2_000;
/** Concurrent messages on one connection. */
const AT_ONCE = 50;
/** Warm-up before memory is measured, so that all code has run and all pools are filled. */
const WARM_UP_SHARE = 0.25;
const HEAP_GROWTH_MB_MAX = 16;

const FRAMES_EACH = 100;
const FRAMES_EACH_SHORT = 4;
const LOG_KB_MAX = 400;

/** Nearly as many as the service accepts. */
const UNFINISHED_CONNECTIONS = 1_000;
const UNFINISHED_CONNECTIONS_SHORT = 300;
/** Half the maximum size of a frame. */
const UNFINISHED = `60000#${'x'.repeat(32_000)}`;
const UNFINISHED_MB_MAX = 64;
const CLOSED_SECONDS_MAX = 20;

const READERS = 40;
const READERS_SHORT = 10;
const BIG = '@bench-60x1500';
const READERS_MB_MAX = 64;
/** A client may read nothing for 30 seconds, after the last byte that its kernel has taken. */
const READERS_SECONDS_MAX = 75;

/** Hostile messages over TCP and NATS, with memory measurements. */
export const messages: Part = async (chaosRun) => {
  const fakeYoutube = await startFakeYoutube();
  const service = await Service.start(chaosRun.folder, {
    DATABASE_URL: await chaosRun.database.create(),
    YOUTUBE_BASE_URL: fakeYoutube.url,
    MESSAGE_TRANSPORT: 'tcp',
    MESSAGE_HOST: '127.0.0.1',
    MESSAGE_PORT: '0',
  });
  try {
    const port = Number(/"url":"tcp:\/\/127\.0\.0\.1:(\d+)"/.exec(await service.log())?.[1]);
    const field = new Field(service, await service.customer(), port, chaosRun.short, new RandomSource(chaosRun.seed));
    await field.manyMessages();
    chaosRun.say('many messages on one connection');
    await field.hostileFrames();
    chaosRun.say('hostile frames');
    await field.unfinishedFrames();
    chaosRun.say('unfinished frames');
    await field.stalledReaders();
    chaosRun.say('stalled readers');
    const settled = await settledState(service);
    const ended = equal('the service exits with 0', await service.stop(), { code: 0, signal: null });
    const flood = await natsFlood(chaosRun, fakeYoutube.url);
    return {
      text:
        'Messages with and without a key, thousands on one connection; hostile frames, after each of which the ' +
        'connection is closed or works; unfinished frames; clients that never read; and a flood without keys over NATS.',
      columns: ['fault', 'times', 'result', 'log'],
      rows: [...field.rows, ...flood.rows],
      checks: [...field.checks, ...settled, ended, ...flood.checks],
    };
  } finally {
    await service.stop('SIGKILL').catch(() => undefined);
    await fakeYoutube.close();
  }
};

class Field {
  readonly rows: (string | number)[][] = [];
  readonly checks: Check[] = [];

  constructor(
    private readonly service: Service,
    private readonly customer: Customer,
    private readonly port: number,
    private readonly short: boolean,
    private readonly random: RandomSource,
  ) {}

  /** Without a key, with a wrong one, and with the right one, all on one connection that stays open. */
  async manyMessages(): Promise<void> {
    const { key } = this.customer;
    const caller = new Caller(this.port).read();
    const ends = new Map<string, number>();
    const data = [
      { id: '@tidewater' },
      { apiKey: `ctk_${'x'.repeat(40)}`, id: '@tidewater' },
      { apiKey: key, id: '!' },
    ];
    let sent = 0;
    const request = async (): Promise<void> => {
      const message = sent % 200 === 0 ? { apiKey: key, id: '@emptyslip' } : data[sent % data.length];
      sent += 1;
      const end = await caller.request(message ?? {});
      ends.set(end, (ends.get(end) ?? 0) + 1);
    };
    const count = this.short ? REFUSED_SHORT : REFUSED;
    const first = Math.floor(count * WARM_UP_SHARE);
    await atOnce(Array.from({ length: first }), AT_ONCE, request);
    const before = { ...(await this.look()), listeners: (await this.service.listeners()).total };
    await atOnce(Array.from({ length: count - first }), AT_ONCE, request);
    const after = { ...(await this.look()), listeners: (await this.service.listeners()).total };
    const responded = [...ends.values()].reduce((sum, one) => sum + one, 0);
    const kinds = [...ends.keys()].sort();
    this.rows.push([
      'many messages on one connection',
      count,
      [...ends].map(([end, times]) => `${end} ${times}`).join(', '),
      `${after.logKilobytes - before.logKilobytes} KB`,
    ]);
    this.checks.push(
      equal('many messages: replies', responded, count),
      equal(
        'many messages: unexpected results',
        kinds.filter(
          (kind) => !['channel_not_found', 'invalid_api_key', 'rate_limited', 'unauthorized'].includes(kind),
        ),
        ['summary'],
      ),
      atMost(
        'many messages: heap growth since the first quarter, with the connection open',
        (after.heapUsed - before.heapUsed) / 2 ** 20,
        HEAP_GROWTH_MB_MAX,
        'MB',
      ),
      atMost('many messages: additional listeners since the first quarter', after.listeners - before.listeners, 50, ''),
      nothing('many messages: timers that remain', more(before, after, 'Timeout')),
    );
    caller.socket.destroy();
  }

  /** After each the connection is closed, or responds to the next message. */
  async hostileFrames(): Promise<void> {
    const kinds = Object.entries(HOSTILE_FRAMES);
    const each = this.short ? FRAMES_EACH_SHORT : FRAMES_EACH;
    const before = await this.look();
    const wrong: string[] = [];
    let closed = 0;
    const fuzzRequests = kinds.flatMap(([name, make]) =>
      Array.from({ length: each }, () => ({ name, bytes: make(this.random) })),
    );
    await atOnce(fuzzRequests, 20, async ({ name, bytes }) => {
      const caller = new Caller(this.port).read().send(bytes);
      const response = caller.request({});
      await until('The connection is closed or replies', () => settledIn(response), 10_000).catch(() =>
        wrong.push(`${name}: neither`),
      );
      const end = await Promise.race([response, Promise.resolve('neither')]);
      if (end === 'closed') closed += 1;
      else if (end !== 'unauthorized' && end !== 'rate_limited') wrong.push(`${name}: ${end}`);
      caller.socket.destroy();
    });
    const well = await this.request();
    const after = await this.look();
    this.rows.push([
      `hostile frames of ${kinds.length} kinds`,
      fuzzRequests.length,
      `${closed} connections closed`,
      `${after.logKilobytes - before.logKilobytes} KB`,
    ]);
    const bugs = (await this.service.log()).split('\n').filter((line) => /"event":"bug"|"level":"error"/.test(line));
    this.checks.push(
      nothing('hostile frames: connections that neither were closed nor replied to the next message', wrong),
      equal('hostile frames: a concurrent message', well, 'summary'),
      atMost('hostile frames: log output', after.logKilobytes - before.logKilobytes, LOG_KB_MAX, 'KB'),
      nothing(
        'hostile frames: bugs in the log',
        bugs.map((line) => line.slice(0, 200)),
      ),
    );
  }

  async unfinishedFrames(): Promise<void> {
    const before = await this.look();
    const count = this.short ? UNFINISHED_CONNECTIONS_SHORT : UNFINISHED_CONNECTIONS;
    const guests = Array.from({ length: count }, () => new Caller(this.port).read().send(UNFINISHED));
    const startedAtMs = performance.now();
    // The kernel has accepted everything, and the service has read or refused it.
    await until('All have been sent', () => guests.every(({ closed, socket }) => closed || socket.bytesWritten > 0));
    const well = await this.request();
    const during = await this.look();
    const held = await this.connected();
    if (!this.short) {
      await until('They are closed', () => guests.every(({ closed }) => closed), CLOSED_SECONDS_MAX * 2_000).catch(
        () => undefined,
      );
      this.checks.push(
        atMost(
          'unfinished frames: the last is closed after',
          (performance.now() - startedAtMs) / 1000,
          CLOSED_SECONDS_MAX,
          's',
        ),
      );
    }
    for (const { socket } of guests) socket.destroy();
    this.rows.push([
      'unfinished frames',
      guests.length,
      `${held} concurrent connections`,
      `${during.logKilobytes - before.logKilobytes} KB`,
    ]);
    this.checks.push(
      atMost(
        'unfinished frames: memory growth',
        (heldBytes(during) - heldBytes(before)) / 2 ** 20,
        UNFINISHED_MB_MAX,
        'MB',
      ),
      equal('unfinished frames: a concurrent message', well, 'summary'),
    );
  }

  /** Clients that request megabytes and never read. */
  async stalledReaders(): Promise<void> {
    const message = { apiKey: this.customer.key, id: BIG, limit: 60 };
    const fetching = new Caller(this.port).read();
    const fetched = await fetching.request(message);
    fetching.socket.destroy();
    const before = await this.look();
    const readers = Array.from({ length: this.short ? READERS_SHORT : READERS }, () => new Caller(this.port));
    for (const reader of readers) void reader.request(message);
    const startedAtMs = performance.now();
    const well = await this.request();
    const during = await this.look();
    if (!this.short) {
      await until(
        'They are closed',
        async () => (await this.connected()) === 0,
        READERS_SECONDS_MAX * 2_000,
        500,
      ).catch(() => undefined);
      const seconds = (performance.now() - startedAtMs) / 1000;
      this.checks.push(atMost('stalled readers: the last is closed after', seconds, READERS_SECONDS_MAX, 's'));
    }
    for (const { socket } of readers) socket.destroy();
    this.rows.push([
      'stalled readers',
      readers.length,
      `answers of ${BIG}, ${((heldBytes(during) - heldBytes(before)) / 2 ** 20).toFixed(0)} MB more memory`,
      `${during.logKilobytes - before.logKilobytes} KB`,
    ]);
    this.checks.push(
      equal('stalled readers: the first, which reads, receives everything', fetched, 'summary'),
      equal('stalled readers: a concurrent message', well, 'summary'),
      atMost('stalled readers: memory growth', (heldBytes(during) - heldBytes(before)) / 2 ** 20, READERS_MB_MAX, 'MB'),
    );
  }

  /** The number of the service's connections, without its listening socket. */
  private async connected(): Promise<number> {
    const ports = await callersOf(this.service.program.child.pid ?? 0, this.port);
    return [...(ports ?? [])].filter((port) => port !== 0).length;
  }

  /** A message of a regular client. */
  private async request(): Promise<string> {
    const caller = new Caller(this.port).read();
    try {
      return await caller.request({ apiKey: this.customer.key, id: '@emptyslip' });
    } finally {
      caller.socket.destroy();
    }
  }

  private async look(): Promise<Resources & { logKilobytes: number }> {
    const resources = await this.service.resources();
    return { ...resources, logKilobytes: Math.ceil((await this.service.log()).length / 1024) };
  }
}

/** After a garbage collection. Resident memory is not used, since the process keeps freed pages. */
function heldBytes({ heapUsed, external }: Resources): number {
  return heapUsed + external;
}

async function settledIn(work: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([work, Promise.resolve(pending)])) !== pending;
}

function more(before: Resources, after: Resources, name: string): string[] {
  const [one, other] = [before.held[name] ?? 0, after.held[name] ?? 0];
  return other > one + 10 ? [`${other} instead of ${one}`] : [];
}
