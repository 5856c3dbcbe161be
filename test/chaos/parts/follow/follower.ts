import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from '../../harness/fleet.js';
import type { Customer } from '../../harness/service.js';
import { at } from '../../harness/transcripts.js';
import type { UploadEvent } from './events.js';
import type { ChannelHistory, PublishedUpload } from './history.js';

const READ_PAUSE_MS = 100;
const PAGE = 40;

interface FeedEntry {
  videoId: string;
  ok: boolean;
}

export interface Wanted {
  start: 'now' | number;
  kinds?: readonly 'video'[];
  keep?: boolean;
}

/** A subscription to a channel, with a reader of its feed that reads all the time. */
export class Follower {
  readonly wrong: string[] = [];
  /** What the reader has read. */
  private readonly read: FeedEntry[] = [];
  private reads = true;
  private reading: Promise<void> = Promise.resolve();

  private constructor(
    private readonly fleet: Fleet,
    readonly customer: Customer,
    readonly history: ChannelHistory,
    readonly id: string,
    private readonly wanted: Wanted,
  ) {}

  static async create(fleet: Fleet, customer: Customer, history: ChannelHistory, wanted: Wanted): Promise<Follower> {
    const body = { channel: history.id, languages: ['en'], checkMinutes: 15, ...wanted };
    const { status, body: created, text } = await fleet.call(customer, 'POST', '/subscriptions', { body });
    const id = at(created, 'id');
    if (status !== 201 || typeof id !== 'string') throw new Error(`POST /subscriptions answers ${status}: ${text}`);
    return new Follower(fleet, customer, history, id, wanted);
  }

  startReading(): void {
    this.reading = this.readOn().catch((error: unknown) => void this.wrong.push(`${this.id}: ${String(error)}`));
  }

  /** Lets the reader read to the end, and ends it. */
  async endReading(): Promise<void> {
    this.reads = false;
    await this.reading;
  }

  /** Asks for a check; it may be too early for one, or the caller has paused the subscription. */
  async check(): Promise<void> {
    await this.send('POST', '/check', [202, 409, 429]);
  }

  async change(state: 'active' | 'paused'): Promise<void> {
    await this.send('PATCH', '', [200], { state });
  }

  /** Compares the feed with the history of the channel, with what the reader has read, and with the events. */
  async compare(events: readonly UploadEvent[]): Promise<void> {
    const feed = await this.feed();
    const text = (entries: readonly FeedEntry[]): string => JSON.stringify(entries);
    if (text(this.read) !== text(feed)) this.report(`its reader has ${this.read.length} of ${feed.length} entries`);
    for (const [index, { videoId, ok }] of feed.entries()) {
      const own = events.filter((event) => event.videoId === videoId);
      const expected = `${ok ? 'upload.ready' : 'upload.failed'} after=${index}`;
      const found = own.map(({ type, after }) => `${type} after=${after}`).join();
      if (found !== expected) this.report(`the events of ${videoId} are [${found}] instead of ${expected}`);
    }
    if (events.length !== feed.length) this.report(`${events.length} events for ${feed.length} entries`);
    this.compareUploads(feed);
    await this.compareSummary(feed);
  }

  private compareUploads(feed: readonly FeedEntry[]): void {
    const found = new Map<string, FeedEntry>();
    for (const entry of feed) {
      if (found.has(entry.videoId)) this.report(`${entry.videoId} is in the feed twice`);
      found.set(entry.videoId, entry);
    }
    const first = typeof this.wanted.start === 'number' ? this.history.former.slice(0, this.wanted.start) : [];
    for (const id of first) if (!found.has(id)) this.report(`${id} is not delivered first`);
    for (const id of found.keys()) {
      if (!first.includes(id) && !this.history.published.has(id)) this.report(`${id} is from before the start`);
    }
    for (const upload of this.history.published.values()) this.compareUpload(upload, found.get(upload.id));
  }

  private compareUpload(upload: PublishedUpload, entry: FeedEntry | undefined): void {
    // A kind that could not be read is delivered.
    const isOptional = upload.isDeleted || (upload.state === 'short' && this.wanted.kinds);
    if (!entry && !isOptional) this.report(`${upload.id} (${upload.state}) is not in the feed`);
    if (entry && !upload.wasTaken && !entry.ok) {
      this.report(`${upload.id} (${upload.state}) is ${JSON.stringify(entry)}`);
    }
  }

  private async compareSummary(feed: readonly FeedEntry[]): Promise<void> {
    const summary = at(await this.send('GET', '', [200]), 'summary');
    const number = (name: string): number => Number(at(summary, name));
    const succeeded = feed.filter(({ ok }) => ok).length;
    const holds =
      number('total') === feed.length &&
      number('succeeded') === succeeded &&
      number('failed') === feed.length - succeeded &&
      number('pending') === 0 &&
      number('cached') + number('fetched') === succeeded;
    if (!holds) this.report(`${JSON.stringify(summary)} for ${feed.length} entries, ${succeeded} with a text`);
  }

  /** The whole feed, whose cursors have no gap. */
  private async feed(): Promise<FeedEntry[]> {
    const lines = (
      await this.fleet.call(this.customer, 'GET', `/subscriptions/${this.id}/results`, {
        headers: { Accept: 'application/x-ndjson' },
      })
    ).text
      .split('\n')
      .filter(Boolean)
      .map((line): unknown => JSON.parse(line));
    const results = lines.filter((line) => at(line, 'type') === 'result');
    const gap = results.findIndex((line, index) => numberOf(at(line, 'cursor')) !== index + 1);
    if (gap !== -1) this.report(`entry ${gap + 1} has the cursor ${String(at(results[gap], 'cursor'))}`);
    if (numberOf(at(lines.at(-1), 'next')) !== results.length)
      this.report(`the feed ends with ${JSON.stringify(lines.at(-1))}`);
    return results.map((line) => entryOf(at(line, 'result')));
  }

  private async readOn(): Promise<void> {
    let after = '0';
    for (;;) {
      const isLast = !this.reads;
      const page = await this.send('GET', `/results?limit=${PAGE}&after=${after}`, [200]);
      const results = at(page, 'results');
      const entries = Array.isArray(results) ? results.map(entryOf) : [];
      this.read.push(...entries);
      after = String(at(page, 'next'));
      if (entries.length < PAGE && isLast) return;
      if (entries.length < PAGE) await sleep(READ_PAUSE_MS);
    }
  }

  private async send(method: string, path: string, statuses: readonly number[], body?: object): Promise<unknown> {
    const response = await this.fleet.call(this.customer, method, `/subscriptions/${this.id}${path}`, body && { body });
    if (!statuses.includes(response.status)) {
      throw new Error(`${method} ${path} answers ${response.status} ${response.text.slice(0, 200)}`);
    }
    return response.body;
  }

  private report(what: string): void {
    this.wrong.push(`${this.id} to ${this.history.id}: ${what}`);
  }
}

/** The number in a cursor, whose mark follows it. */
const numberOf = (cursor: unknown): number => parseInt(String(cursor), 10);

function entryOf(entry: unknown): FeedEntry {
  return { videoId: String(at(entry, 'videoId')), ok: at(entry, 'ok') === true };
}
