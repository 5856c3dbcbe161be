import { startFakeYoutube } from '../../fake-youtube/fake-youtube.js';
import { RandomSource } from '../harness/random.js';
import { Redis } from '../harness/redis.js';
import { Service, type Customer } from '../harness/service.js';
import { settledState } from '../harness/settled.js';
import { equal, nothing, type Part } from '../chaos-run.js';
import { EntrySigner } from './cache/entry-signer.js';
import { connectBytes, POISONS, type Bytes, type Entry, type Kind, type Poison } from './cache/corrupt-entries.js';

const ROUNDS = 128;
const ROUNDS_SHORT = 32;
/** One with videos in every state, and one whose texts exceed the process's local copies. */
const CHANNELS = ['@harbourlight', '@bench-14x1000'];
const LIMIT = 16;
const SECRET = 'the-secret-of-the-service-under-chaos';
const OTHER_SECRET = 'the-secret-of-somebody-who-forges-entries';

interface ResponseBody {
  channel: unknown;
  results: { videoId: string; ok: boolean; transcript: unknown; error?: { code: string } }[];
  summary: { total: number; fetched: number };
}

interface Seen {
  times: number;
  entries: number;
  fetched: number;
}

/** Entries of the shared cache that are damaged, of another format, or of another video. */
export const cache: Part = async ({ folder, database, seed, short, say }) => {
  const redis = await Redis.start(folder);
  const fakeYoutube = await startFakeYoutube();
  const url = await database.create();
  const environment = {
    DATABASE_URL: url,
    YOUTUBE_BASE_URL: fakeYoutube.url,
    REDIS_URL: redis.url,
    CACHE_MAX_MEGABYTES: '1',
    CACHE_SECRET: SECRET,
  };
  const service = await Service.start(folder, environment);
  const bytes = await connectBytes(redis.url);
  try {
    const customer = await service.customer();
    const signers = { signer: await EntrySigner.with(SECRET), forger: await EntrySigner.with(OTHER_SECRET) };
    const cases = new Cases(service, customer, bytes, new RandomSource(seed), signers);
    await cases.learn();
    const rounds = short ? ROUNDS_SHORT : ROUNDS;
    for (let round = 0; round < rounds; round += 1) {
      if (round % 50 === 49) say(`${round + 1} rounds`);
      await cases.round(POISONS[round % POISONS.length]);
    }
    const book = await service.verified(customer.id);
    const unreadable = await cases.unreadable();
    return {
      text:
        `${rounds} rounds: entries in Redis are damaged, exchanged, forged or converted, and the channel is requested ` +
        'again, as JSON or gzip in turn. Every response is compared with the first one, transcript by transcript.',
      columns: ['corruption', 'times', 'entries', 'fetched again'],
      rows: [...cases.seen].map(([name, { times, entries, fetched }]) => [name, times, entries, fetched]),
      checks: [
        equal('rounds', cases.rounds, rounds),
        nothing('responses that are not 200 and complete, or differ from the first one', cases.wrong),
        {
          name: 'damaged entries are detected and fetched again',
          observed: `${cases.fetchedAnew} transcripts`,
          passed: cases.fetchedAnew > rounds / 4,
        },
        {
          name: 'every unreadable entry that a call reads is counted in /metrics',
          observed: `${unreadable}, at least ${cases.unreadableMin}`,
          passed: unreadable >= cases.unreadableMin && cases.unreadableMin > 0,
        },
        equal('transcripts charged, equal to those in the responses', book.used, cases.fetched),
        equal('`usage --verify` is exact, and nothing is reserved', [book.exact, book.reserved], [true, 0]),
        ...(await settledState(service)),
        equal('the service exits with 0', await service.stop(), { code: 0, signal: null }),
      ],
    };
  } finally {
    bytes.destroy();
    await service.stop('SIGKILL').catch(() => undefined);
    await fakeYoutube.close();
    await redis.stop('SIGKILL');
  }
};

class Cases {
  rounds = 0;
  fetched = 0;
  fetchedAnew = 0;
  /** Unreadable strings that the next call had to read. */
  unreadableMin = 0;
  readonly wrong: string[] = [];
  readonly seen = new Map<string, Seen>();
  private readonly first = new Map<string, string>();

  constructor(
    private readonly service: Service,
    private readonly customer: Customer,
    private readonly bytes: Bytes,
    private readonly random: RandomSource,
    private readonly signers: { signer: EntrySigner; forger: EntrySigner },
  ) {}

  /** Requests everything once, in both formats, before any corruption. */
  async learn(): Promise<void> {
    for (const channel of CHANNELS) {
      const body = await this.request(channel, false);
      if (!body) throw new Error(this.wrong[0]);
      this.first.set(channel, compared(body));
      await this.request(channel, true);
    }
  }

  async round(poison: Poison | undefined): Promise<void> {
    if (!poison) return;
    const entries = await this.entries();
    const gzip = this.random.often(0.5);
    const channel = this.random.pick(CHANNELS);
    const chosen = entries.filter((entry) => MARKS[channel]?.test(entry.key) === true && poison.fits(entry));
    // The entries that each call reads, so that most damaged entries are read soon.
    const read = chosen.filter(({ kind }) => kind !== (gzip ? 'text' : 'deflated'));
    let count = 0;
    const touched = new Set<string>();
    for (let entry = 0; entry < 4; entry += 1) {
      const one = this.random.pick(read.length > 0 ? read : chosen);
      if (touched.has(one.key)) continue;
      const others = entries.filter(({ key }) => !touched.has(key));
      const poisoned = await poison.apply({
        bytes: this.bytes,
        entry: one,
        others,
        random: this.random,
        ...this.signers,
      });
      for (const { key } of poisoned) touched.add(key);
      count += poisoned.length;
      this.unreadableMin += poisoned.filter(
        ({ kind, unreadable }) => unreadable && kind !== 'text' && kind !== 'deflated',
      ).length;
    }
    const before = this.fetched;
    const body = await this.request(channel, gzip);
    if (body && compared(body) !== this.first.get(channel)) {
      this.wrong.push(
        `${poison.name} (${[...touched].join(', ')}): ${difference(compared(body), this.first.get(channel) ?? '')}`,
      );
    }
    const { times = 0, entries: met = 0, fetched = 0 } = this.seen.get(poison.name) ?? {};
    this.seen.set(poison.name, { times: times + 1, entries: met + count, fetched: fetched + this.fetched - before });
    this.fetchedAnew += this.fetched - before;
    this.rounds += 1;
    // Both formats again, so that the next round finds them.
    await this.request(channel, !gzip);
  }

  async unreadable(): Promise<number> {
    const metrics = await this.service.metrics();
    return [...metrics].reduce((sum, [name, value]) => sum + (name.startsWith('ct_cache_unreadable') ? value : 0), 0);
  }

  private async request(channel: string, gzip: boolean): Promise<ResponseBody | undefined> {
    const response = await fetch(`${this.service.url}/channels/${channel}/transcripts?limit=${LIMIT}`, {
      headers: {
        Authorization: `Bearer ${this.customer.key}`,
        'Accept-Encoding': gzip ? 'gzip' : 'identity',
        // A kept-alive connection would be counted as one that the service leaks.
        Connection: 'close',
      },
    }).then(
      async (answer) => ({ status: answer.status, text: await answer.text() }),
      (error: unknown) => ({ status: 0, text: String(error) }),
    );
    if (response.status !== 200) {
      this.wrong.push(`${response.status} for ${channel}: ${response.text.slice(0, 200)}`);
      return undefined;
    }
    const body = JSON.parse(response.text) as ResponseBody;
    this.fetched += body.summary.fetched;
    return body;
  }

  private async entries(): Promise<Entry[]> {
    const keys = (await this.bytes.keys('ct*')).map(String).sort();
    const entries: Entry[] = [];
    for (const key of keys) {
      const kind = kindOf(key);
      const value = kind && (await this.bytes.get(key).catch(() => null));
      if (kind && value) entries.push({ key, kind, value });
    }
    return entries;
  }
}

/** The identifiers in the cache keys of a channel and of its videos. */
const MARKS: Readonly<Record<string, RegExp>> = {
  '@harbourlight': /harbourlight|:hl-/,
  '@bench-14x1000': /bench-0*14x0*1000|:bn/,
};

function kindOf(key: string): Kind | undefined {
  const [, kind] = /^ct5:(id|channel|uploads|transcript):/.exec(key) ?? [];
  if (kind !== 'transcript') return (['id', 'channel', 'uploads'] as const).find((known) => known === kind);
  return key.endsWith(':json') ? 'text' : key.endsWith(':deflated') ? 'deflated' : 'known';
}

/** The parts of a response that must be identical every time. */
function compared({ channel, results }: ResponseBody): string {
  return JSON.stringify([
    channel,
    results.map(({ videoId, ok, transcript, error }) => ({ videoId, ok, transcript, code: error?.code })),
  ]);
}

function difference(one: string, other: string): string {
  const at = [...one].findIndex((character, index) => character !== other[index]);
  return `${one.slice(Math.max(0, at - 60), at + 60)} instead of ${other.slice(Math.max(0, at - 60), at + 60)}`;
}
