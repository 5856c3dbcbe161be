import { generatedChannelByHandle } from '../../../fake-youtube/catalogue/generated-channels.js';
import type { Customer } from '../../harness/service.js';
import { at } from '../../harness/transcripts.js';
import type { Fleet } from '../../harness/fleet.js';

const SUMMARY = ['total', 'succeeded', 'failed', 'cached', 'fetched', 'pending'] as const;
type Summary = Record<(typeof SUMMARY)[number], number>;
/** What never becomes less while a job runs, is canceled and resumed. */
const GROWING = ['total', 'succeeded', 'failed', 'cached', 'fetched'] as const;

const PAGE = 200;
/** Positions modulo 20 of the videos of `@mixed-…` that have no text. */
const WITHOUT_TEXT = new Set([3, 7, 11, 13, 16]);

/** The failures of a video whose every attempt met a fault. */
const GIVEN_UP: ReadonlySet<unknown> = new Set(['upstream_blocked', 'upstream_timeout', 'upstream_failure']);

/** One archive job, which is compared with its channel at every look. */
export class Archive {
  state = '';
  reason = '';
  readonly wrong: string[] = [];
  /** Videos that failed although they have a text: all attempts of the job met a fault. */
  givenUp = 0;
  /** Delivered videos that the library must have, each with the words of its first segment. */
  readonly kept = new Map<string, string>();
  private last: Summary | undefined;
  private reading: Promise<void> = Promise.resolve();

  private constructor(
    private readonly fleet: Fleet,
    readonly customer: Customer,
    readonly id: string,
    readonly handle: string,
    private readonly keep: boolean,
  ) {}

  /** Creates the job; a request that is repeated after a lost response must not create another. */
  static async create(
    fleet: Fleet,
    customer: Customer,
    job: { handle: string; onQuota: 'pause' | 'fail'; keep: boolean; idempotencyKey: string },
  ): Promise<Archive> {
    const { status, body, text } = await fleet.call(customer, 'POST', '/jobs', {
      headers: { 'Idempotency-Key': job.idempotencyKey },
      body: { channel: job.handle, languages: ['en'], onQuota: job.onQuota, keep: job.keep },
    });
    const id = at(body, 'id');
    if (status !== 202 || typeof id !== 'string') throw new Error(`POST /jobs answers ${status}: ${text}`);
    return new Archive(fleet, customer, id, job.handle, job.keep);
  }

  get ended(): boolean {
    return ['completed', 'canceled', 'failed'].includes(this.state);
  }

  get fetched(): number {
    return this.last?.fetched ?? 0;
  }

  /** Reads the job and compares it with what it was before, one look after the other. */
  look(): Promise<void> {
    this.reading = this.reading
      .then(() => this.read())
      .catch((error: unknown) => void this.wrong.push(`${this.id}: ${String(error)}`));
    return this.reading;
  }

  private async read(): Promise<void> {
    const { status, body, text } = await this.fleet.call(this.customer, 'GET', `/jobs/${this.id}`);
    if (status !== 200) {
      this.wrong.push(`${this.id}: GET answers ${status} ${text}`);
      return;
    }
    const summary = Object.fromEntries(SUMMARY.map((name) => [name, Number(at(body, 'summary', name))])) as Summary;
    const { total, succeeded, failed, cached, fetched, pending } = summary;
    const state = String(at(body, 'state'));
    const before = this.last;
    const rules: readonly [boolean, string][] = [
      [total === succeeded + failed + pending, 'total is not succeeded + failed + pending'],
      [succeeded === cached + fetched, 'succeeded is not cached + fetched'],
      [pending === 0 || state !== 'completed', 'completed with pending videos'],
      [this.state !== 'completed' || state === 'completed', 'completed, and then not'],
      [!before || GROWING.every((name) => summary[name] >= before[name]), `less than ${JSON.stringify(before)}`],
    ];
    for (const [holds, what] of rules) if (!holds) this.wrong.push(`${this.id}: ${what}: ${text}`);
    this.last = summary;
    this.state = state;
    this.reason = String(at(body, 'reason'));
  }

  /** Cancels or resumes the job. @returns false for 409: it has finished meanwhile */
  async change(action: 'cancel' | 'resume'): Promise<boolean> {
    const { status, text } = await this.fleet.call(this.customer, 'POST', `/jobs/${this.id}/${action}`);
    if (status >= 400 && status !== 409) this.wrong.push(`${this.id}: ${action} answers ${status} ${text}`);
    await this.look();
    return status < 400;
  }

  /** Reads all results of the completed job, page by page, and compares them with the channel's videos by position. */
  async compareResults(): Promise<void> {
    const expected = (generatedChannelByHandle(this.handle)?.uploads() ?? []).map(({ id }) => id);
    const found: unknown[] = [];
    let count = 0;
    let after: unknown = null;
    do {
      const path = `/jobs/${this.id}/results?limit=${PAGE}${typeof after === 'string' ? `&after=${after}` : ''}`;
      const { status, body, text } = await this.fleet.call(this.customer, 'GET', path);
      const results = at(body, 'results');
      if (status !== 200 || !Array.isArray(results)) {
        this.wrong.push(`${this.id}: results answer ${status} ${text.slice(0, 200)}`);
        return;
      }
      for (const entry of results) this.compareEntry(entry, found);
      count += results.length;
      after = at(body, 'next');
    } while (typeof after === 'string');
    if (count !== expected.length || JSON.stringify(found) !== JSON.stringify(expected)) {
      this.wrong.push(`${this.id}: ${count} results that are not the ${expected.length} videos of ${this.handle}`);
    }
    const { total = 0, succeeded = 0, failed = 0 } = this.last ?? {};
    const without = expected.filter((_id, index) => this.hasNoText(index)).length + this.givenUp;
    if (total !== expected.length || failed !== without || succeeded !== expected.length - without) {
      this.wrong.push(
        `${this.id}: ${JSON.stringify(this.last)} for ${expected.length} videos, ${without} without text`,
      );
    }
  }

  private compareEntry(entry: unknown, found: unknown[]): void {
    const ok = at(entry, 'ok') === true;
    const segments = at(entry, 'transcript', 'en');
    const hasText = Array.isArray(segments) && segments.length > 0;
    const position = Number(at(entry, 'position'));
    const mayHaveText = !this.hasNoText(position - 1);
    if (mayHaveText && GIVEN_UP.has(at(entry, 'error', 'code'))) this.givenUp += 1;
    else if (ok !== mayHaveText || hasText !== mayHaveText) {
      this.wrong.push(`${this.id}: entry ${position} is ${JSON.stringify(entry).slice(0, 300)}`);
    }
    found[position - 1] = at(entry, 'videoId');
    if (this.keep && hasText) this.kept.set(String(at(entry, 'videoId')), String(at(segments[0], 'text')));
  }

  private hasNoText(index: number): boolean {
    return this.handle.startsWith('@mixed') && WITHOUT_TEXT.has(index % 20);
  }
}
