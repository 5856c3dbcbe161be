import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { pick, seededRandom } from '../../../fake-youtube/catalogue/random.js';
import type { Customer, Service } from '../../harness/service.js';
import { brokenIdentities, readTranscripts } from '../../harness/transcripts.js';

/** The kinds of clients, weighted by frequency. */
export const HABITS = [
  'cold',
  'cold',
  'warm',
  'warm',
  'warm',
  'lines',
  'gzip',
  'one',
  'slow',
  'leaving',
  'wrong',
] as const;
type Habit = (typeof HABITS)[number];

const WRONG_PATHS = [
  '/channels/@sunkentrawler/transcripts',
  '/channels/@tidewater/transcripts?limit=0',
  '/channels/UC/transcripts',
  '/nothing',
];
const PAUSE_MS = 60;

/** The result of a call. */
export interface CallEnd {
  at: number;
  habit: Habit;
  ms: number;
  status: number;
  /** Undefined when the client disconnected. */
  fetched: number | undefined;
  wrong: string[];
}

interface Body {
  status: number;
  bytes: Buffer;
  gzip: boolean;
  whole: boolean;
}

/** Clients of every kind, which call until the time is over. */
export class Load {
  readonly ends: CallEnd[] = [];
  private readonly random: () => number;
  private calls = 0;
  private cold = 0;

  constructor(
    private readonly services: readonly Service[],
    private readonly customer: Customer,
    private readonly secondsMax: number,
    seed: number,
  ) {
    this.random = seededRandom(seed);
  }

  async run(callers: number, endsAtMs: number): Promise<void> {
    const caller = async (): Promise<void> => {
      while (performance.now() < endsAtMs) {
        await this.call(HABITS[this.calls++ % HABITS.length] ?? 'warm');
        await sleep(this.random() * 2 * PAUSE_MS);
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
  }

  private async call(habit: Habit): Promise<void> {
    const startedAtMs = performance.now();
    const service = pick(this.random, this.services);
    const path = this.path(habit);
    const wrong: string[] = [];
    const { status, bytes, gzip, whole } = await this.read(service, path, habit).catch((error: unknown) => {
      if (habit !== 'leaving') wrong.push(`${habit} ${path}: ${String(error)}`);
      return { status: 0, bytes: Buffer.alloc(0), gzip: false, whole: false };
    });
    const ms = performance.now() - startedAtMs;
    const end: CallEnd = { at: startedAtMs, habit, ms, status, fetched: undefined, wrong };
    this.ends.push(end);
    if (habit === 'leaving') return;
    if (!whole) wrong.push(`${habit} ${path}: ${status}, cut short`);
    else this.check(end, path, gzip ? gunzipSync(bytes).toString() : bytes.toString());
    // The duration of a slow reader's call depends on the reader.
    if (habit !== 'slow' && ms > this.secondsMax * 1000) wrong.push(`${habit} ${path}: ${ms.toFixed(0)} ms`);
  }

  private check(end: CallEnd, path: string, text: string): void {
    const { habit, status, wrong } = end;
    end.fetched = 0;
    if (status === 200) {
      const body = habit === 'lines' ? undefined : (JSON.parse(text) as unknown);
      const reported = readTranscripts({ status, headers: {}, text, body, whole: true, ms: end.ms });
      if (!reported) wrong.push(`${habit} ${path}: not whole`);
      else wrong.push(...brokenIdentities(reported));
      end.fetched = reported?.summary.fetched ?? 0;
      return;
    }
    const expected = habit === 'wrong' ? [400, 404, 502, 504] : [502, 504];
    if (!expected.includes(status)) wrong.push(`${habit} ${path}: ${status} ${text.slice(0, 200)}`);
  }

  private path(habit: Habit): string {
    if (habit === 'wrong') return pick(this.random, WRONG_PATHS);
    if (habit === 'one') return '/channels/@fogsignalradio/transcripts?limit=1';
    if (habit === 'slow') return `/channels/@bench-20x${1_000 + Math.floor(this.random() * 3)}/transcripts`;
    if (habit === 'warm') return `/channels/@bench-10x${100 + Math.floor(this.random() * 5)}/transcripts`;
    if (habit === 'cold' || habit === 'leaving') {
      this.cold += 1;
      return `/channels/@bench-5x${1 + (this.cold % 5_000)}/transcripts`;
    }
    return '/channels/@harbourlight/transcripts?limit=25';
  }

  private read(service: Service, path: string, habit: Habit): Promise<Body> {
    const { hostname, port } = new URL(service.url);
    const headers = {
      Authorization: `Bearer ${this.customer.key}`,
      ...(habit === 'lines' && { Accept: 'application/x-ndjson' }),
      ...(habit === 'gzip' && { 'Accept-Encoding': 'gzip' }),
    };
    const disconnectsAfterMs = habit === 'leaving' ? this.random() * 300 : undefined;
    return new Promise((resolve, reject) => {
      const request = httpRequest({ hostname, port, path, headers, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          if (habit !== 'slow') return;
          response.pause();
          setTimeout(() => response.resume(), 5);
        });
        response.once('close', () => {
          clearTimeout(leaving);
          const gzip = response.headers['content-encoding'] === 'gzip';
          const { statusCode: status = 0, complete: whole } = response;
          resolve({ status, bytes: Buffer.concat(chunks), gzip, whole });
        });
        response.on('error', () => undefined);
      });
      const leaving =
        disconnectsAfterMs === undefined ? undefined : setTimeout(() => request.destroy(), disconnectsAfterMs);
      request.on('error', (error) => {
        clearTimeout(leaving);
        reject(error);
      });
      request.end();
    });
  }
}
