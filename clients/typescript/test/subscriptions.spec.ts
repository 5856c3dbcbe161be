import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ChannelTranscriptsClient, type FollowedVideo, type Subscription, type VideoTranscript } from '../src/index.js';
import { pauseSeconds } from '../src/subscriptions.js';
import { json, lost, refusal, scripted, unavailable, type SentRequest } from './scripted-fetch.js';

const NOTHING = { total: 0, succeeded: 0, failed: 0, cached: 0, fetched: 0, pending: 0 };
const SUBSCRIPTION: Subscription = {
  id: 'sub_6NfRk2pVx8ZbQ1mLtY4c9H',
  state: 'active',
  reason: null,
  channel: null,
  playlist: null,
  request: {
    ...{ channel: '@tidewater', playlist: null },
    ...{ languages: [], match: 'all', kinds: [], include: [], chunkSeconds: null, checkMinutes: 60, start: 'now' },
    labels: {},
  },
  labels: {},
  startFound: null,
  summary: NOTHING,
  createdAt: '2026-11-20T16:00:00.000Z',
  checkedAt: null,
  nextCheckAt: null,
};

const metadata = {
  ...{ title: null, url: '', publishedAt: null, publishedText: null, durationSeconds: null, viewCount: null },
  ...{ thumbnailUrl: null, kind: null, captionTracks: null },
};
const entryOf = (cursor: number): VideoTranscript => ({
  ...{ videoId: `video-${cursor}`, ok: true, metadata, transcript: {}, cached: false },
});

/** The entries `after + 1` to `end`, as the service writes them. */
function page(after: number, end: number): Response {
  const lines: object[] = [];
  for (let cursor = after + 1; cursor <= end; cursor++)
    lines.push({ type: 'result', cursor: String(cursor), result: entryOf(cursor) });
  lines.push({ type: 'summary', summary: NOTHING, next: String(Math.max(after, end)), subscription: SUBSCRIPTION });
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  return new Response(body, { headers: { 'Content-Type': 'application/x-ndjson' } });
}

const afterOf = ({ path }: SentRequest): number => Number(new URLSearchParams(path.split('?')[1]).get('after') ?? 0);

describe('creating a subscription', () => {
  it('sends the same idempotency key again when the response was lost, so that there is one', async () => {
    const service = scripted(lost, json(SUBSCRIPTION, 201));
    const { subscriptions } = new ChannelTranscriptsClient(service.options, service.wait);
    await subscriptions.create('@tidewater', { languages: ['de', '*'], kinds: ['video'], chunkSeconds: 60, start: 5 });
    const [first, second] = service.sent.map(({ headers }) => headers.get('Idempotency-Key'));
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(second).toBe(first);
    expect(service.sent[1]?.body).toEqual({
      ...{ channel: '@tidewater', languages: 'de,*', kinds: 'video', chunkSeconds: 60, checkMinutes: 60, start: 5 },
    });
    await subscriptions.create('@tidewater', JSON.parse('{ "idempotencyKey": null }') as object);
    expect(service.sent[2]?.headers.get('Idempotency-Key')).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('following a subscription', () => {
  /** Reads so many entries of a service in which `grown` entries become final during each pause. */
  async function read(count: number, grown: readonly number[], pageSize: number, failEvery: number): Promise<number[]> {
    let [stored, requests] = [0, 0];
    const remaining = [...grown];
    const service = scripted((sent) => {
      requests += 1;
      if (failEvery > 0 && requests % failEvery === 0) return unavailable(1);
      return page(afterOf(sent), Math.min(stored, afterOf(sent) + pageSize));
    });
    const wait = (): Promise<void> => Promise.resolve(void (stored += remaining.shift() ?? 1));
    const { subscriptions } = new ChannelTranscriptsClient(service.options, wait);
    const cursors: number[] = [];
    for await (const { videoId, cursor } of subscriptions.follow(SUBSCRIPTION.id)) {
      expect(videoId).toBe(`video-${cursor}`);
      if (cursors.push(Number(cursor)) === count) break;
    }
    return cursors;
  }

  it('yields each entry once, with its cursor, however they arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.array(fc.nat(20), { maxLength: 8 }),
        fc.integer({ min: 1, max: 25 }),
        fc.constantFrom(0, 2, 3),
        async (count, grown, pageSize, failEvery) => {
          const expected = Array.from({ length: count }, (_, index) => index + 1);
          expect(await read(count, grown, pageSize, failEvery)).toEqual(expected);
        },
      ),
    );
  });

  it('goes on after a cursor, and reads a page again that was cut off', async () => {
    const whole = await page(7, 9).text();
    const cut = new Response(whole.slice(0, whole.indexOf('{"type":"summary"')));
    const service = scripted(cut, page(7, 9));
    const { subscriptions } = new ChannelTranscriptsClient(service.options, service.wait);
    const entries = subscriptions.follow(SUBSCRIPTION.id, { after: '7' });
    const read: FollowedVideo[] = [];
    for await (const entry of entries) if (read.push(entry) === 2) break;
    expect(read.map(({ cursor }) => cursor)).toEqual(['8', '9']);
    expect(service.sent.map(afterOf)).toEqual([7, 7]);
    expect(service.sent[0]?.headers.get('Accept')).toBe('application/x-ndjson');
  });

  it('rejects with the reason of the signal, and with what a retry cannot remedy', async () => {
    const stop = new AbortController();
    const service = scripted(page(0, 0));
    const wait = (_seconds: number, signal: AbortSignal | undefined): Promise<void> => {
      stop.abort(new Error('The program ends.'));
      signal?.throwIfAborted();
      return Promise.resolve();
    };
    const client = new ChannelTranscriptsClient(service.options, wait);
    const ended = client.subscriptions.follow(SUBSCRIPTION.id, { signal: stop.signal }).next();
    await expect(ended).rejects.toThrow('The program ends.');
    const expired = scripted(refusal(410, 'results_expired', false));
    const other = new ChannelTranscriptsClient(expired.options, expired.wait);
    await expect(other.subscriptions.follow(SUBSCRIPTION.id, { after: '1' }).next()).rejects.toMatchObject({
      code: 'results_expired',
    });
    expect(expired.pauses).toEqual([]);
  });

  it('waits until the next check and what follows it, at most five minutes, or one while uploads are pending', () => {
    const now = Date.parse('2026-11-20T16:00:00.000Z');
    const at = (seconds: number, pending = 0): number => {
      const nextCheckAt = new Date(now + seconds * 1000).toISOString();
      return pauseSeconds({ ...SUBSCRIPTION, nextCheckAt, summary: { ...NOTHING, pending } }, now);
    };
    expect([at(-100), at(0), at(20.5), at(3_600)]).toEqual([5, 5, 26, 300]);
    expect([at(0, 1), at(3_600, 1)]).toEqual([5, 60]);
    expect(pauseSeconds(SUBSCRIPTION, now)).toBe(300);
  });
});
