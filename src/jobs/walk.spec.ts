import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { unlistedVideo, type Upload } from '../domain/transcript.js';
import type { UploadsListPage } from '../platform/video-platform.js';
import type { Start } from './subscription.js';
import { isWanted, walkPage, type KnownUpload, type Walk } from './walk.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const CREATED_AT_MS = Date.parse('2026-06-01T12:00:00Z');
const PAGE_SIZE = 100;
const DATED = 15;

interface Video {
  id: string;
  publishedAtMs: number;
  hidden: boolean;
  failure: Upload['failure'];
}

/** A channel that changes, and its list as the platform shows it. */
class Channel {
  nowMs = CREATED_AT_MS;
  videos: Video[] = [];
  private made = 0;

  constructor(count: number, hiddenPlaces: readonly number[]) {
    for (let day = count; day >= 1; day--) this.add(CREATED_AT_MS - day * DAY_MS, null);
    for (const place of hiddenPlaces) this.at(place, (video) => (video.hidden = true));
  }

  get visible(): Video[] {
    return this.videos.filter(({ hidden }) => !hidden);
  }

  publish(count: number, failure: Upload['failure'] = null): void {
    for (let index = 0; index < count; index++) this.add((this.nowMs += 1_000), failure);
  }

  /** What was announced is dated to when it runs, and listed there. */
  begin(): void {
    const announced = this.videos.filter(({ failure }) => failure !== null);
    const others = this.videos.filter(({ failure }) => failure === null);
    for (const video of announced) Object.assign(video, { failure: null, publishedAtMs: this.nowMs });
    this.videos = [...announced, ...others];
  }

  at(place: number, change: (video: Video) => void): void {
    const video = this.videos[place % Math.max(1, this.videos.length)];
    if (video) change(video);
  }

  page(offset: number, incomplete: boolean): UploadsListPage {
    const uploads = this.visible
      .slice(offset, offset + PAGE_SIZE)
      .map((video, index) => this.upload(video, offset + index));
    const isLast = offset + PAGE_SIZE >= this.visible.length;
    const pages = offset / PAGE_SIZE + 1;
    return { uploads, next: isLast ? null : String(offset + PAGE_SIZE), incomplete: isLast && incomplete, pages };
  }

  private upload({ id, publishedAtMs, failure }: Video, place: number): Upload {
    const publishedAt = place < DATED ? new Date(publishedAtMs).toISOString() : null;
    const hours = Math.floor((this.nowMs - publishedAtMs) / HOUR_MS);
    const publishedText = failure ? null : hours < 24 ? `${hours} hours ago` : `${Math.floor(hours / 24)} days ago`;
    return { ...unlistedVideo(id), publishedAt, publishedText, failure };
  }

  private add(publishedAtMs: number, failure: Upload['failure']): void {
    this.videos.unshift({ id: `video${this.made++}`, publishedAtMs, hidden: false, failure });
  }
}

/** Stores what the walks of a subscription find, as the database does. */
class Subscription {
  readonly rows = new Map<string, { position: number; state: 'pending' | 'seen'; upload: Upload }>();
  private seenPosition: number | null = null;
  private seenAtMs = CREATED_AT_MS;
  private continuation: string | null = null;

  constructor(private readonly start: Start) {}

  get delivered(): string[] {
    return [...this.rows].flatMap(([id, { state }]) => (state === 'pending' ? [id] : []));
  }

  /** Reads one page. @returns whether the walk goes on */
  step(channel: Channel, fault: Fault): boolean {
    if (fault === 'crash') return true;
    if (fault === 'rejected') {
      this.continuation = null;
      return true;
    }
    const page = channel.page(Number(this.continuation ?? 0), fault === 'incomplete');
    const walk: Walk = {
      ...{ start: this.seenPosition === null ? this.start : null, kinds: [], createdAtMs: CREATED_AT_MS },
      ...{ seenAtMs: this.seenAtMs, delivered: this.delivered.length },
    };
    const step = walkPage(walk, page, this.known(page), channel.nowMs);
    for (const { upload, state } of step.added) {
      expect(this.rows.has(upload.videoId)).toBe(false);
      this.rows.set(upload.videoId, { position: this.rows.size + 1, state, upload });
    }
    for (const { upload } of step.changed) this.rows.set(upload.videoId, { ...this.row(upload.videoId), upload });
    this.continuation = step.end === 'continue' ? page.next : null;
    if (step.end === 'ended') [this.seenPosition, this.seenAtMs] = [this.rows.size, channel.nowMs];
    return step.end === 'continue';
  }

  row(id: string) {
    const row = this.rows.get(id);
    if (!row) throw new Error(`${id} is not known.`);
    return row;
  }

  private known({ uploads }: UploadsListPage): Map<string, KnownUpload> {
    const entries = uploads.flatMap(({ videoId }): [string, KnownUpload][] => {
      const row = this.rows.get(videoId);
      if (!row) return [];
      const seen = this.seenPosition !== null && row.position <= this.seenPosition;
      return [[videoId, { position: row.position, seen, pending: row.state === 'pending' ? row.upload : undefined }]];
    });
    return new Map(entries);
  }
}

type Fault = 'none' | 'rejected' | 'crash' | 'incomplete';
const FAULT = fc.constantFrom<Fault[]>('none', 'none', 'none', 'rejected', 'crash', 'incomplete');
const PLACE = fc.nat(400);
const CHANGE = fc.oneof(
  fc.record({
    type: fc.constant('publish' as const),
    count: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 250 })),
  }),
  fc.record({
    type: fc.constantFrom('delete' as const, 'hide' as const, 'show' as const, 'premiere' as const, 'begin' as const),
    place: PLACE,
  }),
  fc.record({ type: fc.constant('delete_many' as const), count: fc.nat(120) }),
  fc.record({ type: fc.constant('swap' as const), place: fc.nat(DATED - 2) }),
  fc.record({ type: fc.constant('check' as const), faults: fc.array(FAULT, { maxLength: 4 }) }),
);
type Change = typeof CHANGE extends fc.Arbitrary<infer T> ? T : never;

function apply(channel: Channel, change: Exclude<Change, { type: 'check' }>): void {
  channel.nowMs += HOUR_MS;
  switch (change.type) {
    case 'publish':
      return channel.publish(change.count);
    case 'premiere':
      return channel.publish(1, 'video_not_live_yet');
    case 'begin':
      return channel.begin();
    case 'delete':
      channel.videos.splice(change.place, 1);
      return;
    case 'delete_many':
      channel.videos.splice(0, change.count);
      return;
    case 'hide':
      return channel.at(change.place, (video) => (video.hidden = true));
    case 'show':
      return channel.videos.forEach((video, place) => {
        if (place <= change.place) video.hidden = false;
      });
    case 'swap':
      channel.videos.splice(change.place, 2, ...channel.videos.slice(change.place, change.place + 2).reverse());
  }
}

/** Checks until the walk ends; uploads appear between its pages. */
function check(channel: Channel, subscription: Subscription, faults: readonly Fault[], published = 3): void {
  for (let page = 0; subscription.step(channel, faults[page] ?? 'none'); page++)
    if (page < published) channel.publish(1);
}

const START = fc.oneof(
  fc.constant<Start>('now'),
  fc.integer({ min: 1, max: 100 }),
  fc.nat(300).map((place) => `video${place}`),
);

const place = 0;
const EXAMPLES: [number, number[], Start, Change[]][] = [
  // The only upload that was seen is the last one of a page, above a new one.
  [
    1,
    [],
    'now',
    [
      { type: 'publish', count: 1 },
      { type: 'swap', place },
      { type: 'publish', count: 197 },
      { type: 'check', faults: ['rejected'] },
    ],
  ],
  // A stream that was seen moves among more new uploads than a page has.
  [
    ...([150, [], 'now'] as [number, number[], Start]),
    [
      ...[
        { type: 'premiere' as const, place },
        { type: 'check' as const, faults: [] },
      ],
      ...[
        { type: 'publish' as const, count: 90 },
        { type: 'begin' as const, place },
      ],
      { type: 'publish' as const, count: 20 },
    ],
  ],
];

describe('a subscription to a channel with any history', () => {
  it('delivers each upload that appeared after its start once, and none from before it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 350 }),
        fc.uniqueArray(PLACE, { maxLength: 5 }),
        START,
        fc.array(CHANGE, { maxLength: 30 }),
        (count, hiddenPlaces, start, changes) => {
          const channel = new Channel(count, count === 0 ? [] : hiddenPlaces);
          const hiddenFirst = new Set(channel.videos.filter(({ hidden }) => hidden).map(({ id }) => id));
          const listed = channel.visible.map(({ id }) => id);
          const subscription = new Subscription(start);
          const begin = typeof start === 'string' ? listed.indexOf(start) : start;
          const first = listed.slice(0, start === 'now' ? 0 : begin === -1 ? undefined : Number(begin));
          check(channel, subscription, []);
          expect(subscription.delivered.filter((id) => listed.includes(id)).sort()).toEqual([...first].sort());

          const hiddenOnce = new Set(hiddenFirst);
          const moved = new Set<string>();
          for (const change of changes) {
            if (change.type === 'swap')
              for (const { id } of channel.videos.slice(change.place, change.place + 2)) moved.add(id);
            if (change.type === 'check') check(channel, subscription, change.faults);
            else apply(channel, change);
            for (const { id, hidden } of channel.videos) if (hidden) hiddenOnce.add(id);
          }
          check(channel, subscription, [], 0);

          const delivered = new Set(subscription.delivered);
          const required = channel.visible.filter(
            ({ id, publishedAtMs }) => publishedAtMs > CREATED_AT_MS && !hiddenOnce.has(id),
          );
          expect(required.filter(({ id }) => !delivered.has(id))).toEqual([]);
          // What was private for a time and is public again is new, where no check has met it before; so is what moves above
          // an upload that was seen, unless the dates of both are known.
          const isDoubtful = (id: string) => hiddenOnce.has(id) || moved.has(id);
          const tooOld = listed.filter((id) => !first.includes(id) && delivered.has(id) && !isDoubtful(id));
          expect(tooOld).toEqual([]);
          const onFirstPage = required.filter((video) => channel.visible.indexOf(video) < PAGE_SIZE);
          for (const { id, failure } of onFirstPage) expect(subscription.row(id).upload.failure).toBe(failure);
        },
      ),
      { numRuns: 200, examples: EXAMPLES },
    );
  });
});

describe('a walk', () => {
  const FIRST: Walk = {
    ...{ start: 'now', kinds: [], createdAtMs: CREATED_AT_MS, seenAtMs: CREATED_AT_MS },
    delivered: 0,
  };
  const LATER: Walk = { ...FIRST, start: null };
  const uploads = ['a', 'b', 'c'].map((id) => unlistedVideo(id));
  const pageOf = (list: Upload[], pages = 1): UploadsListPage => ({
    uploads: list,
    next: 'next',
    incomplete: false,
    pages,
  });
  const seen = (...ids: string[]) => new Map(ids.map((id, index) => [id, { position: index + 1, seen: true }]));
  const pending = (walk: Walk, known: ReadonlyMap<string, KnownUpload>) =>
    walkPage(walk, pageOf(uploads), known).added.flatMap(({ upload, state }) =>
      state === 'pending' ? [upload.videoId] : [],
    );

  it('takes what is above the last seen upload for new, unless its date is before that of the other one', () => {
    const dated = (day: number) => (upload: Upload) => ({ ...upload, publishedAt: `2026-01-0${day}T00:00:00Z` });
    const [older, seenOne] = [uploads.slice(0, 1).map(dated(1)), uploads.slice(1, 2).map(dated(2))];
    const states = (list: Upload[]) => walkPage(LATER, pageOf(list), seen('b')).added.map(({ state }) => state);
    expect(states([...older, ...seenOne])).toEqual(['seen']);
    expect(states([...uploads.slice(0, 1), ...seenOne])).toEqual(['pending']);
  });

  it('takes what is below the last seen upload for older', () => {
    expect(pending(LATER, seen('b'))).toEqual(['a']);
  });

  it('goes on below a seen upload that stands among new ones, and ends at what is older than the walk before', () => {
    const nowMs = CREATED_AT_MS + 40 * DAY_MS;
    const walk = { ...LATER, seenAtMs: nowMs - 2 * DAY_MS };
    const step = (publishedText: string | null) => {
      const aged = uploads.map((upload) => ({ ...upload, publishedText }));
      const { added, end } = walkPage(walk, pageOf(aged), seen('a'), nowMs);
      return [...added.map(({ state }) => state), end];
    };
    expect(step('23 hours ago')).toEqual(['pending', 'pending', 'continue']);
    expect(step('1 month ago')).toEqual(['seen', 'seen', 'ended']);
    expect(step(null)).toEqual(['seen', 'seen', 'ended']);
  });

  it('reads no more than 5 pages for its start, nor than 50 for a seen upload, also when they add nothing', () => {
    const end = (walk: Walk, pages: number) =>
      [uploads, []].map((list) => walkPage(walk, pageOf(list, pages), new Map()).end);
    const first = { ...FIRST, start: 'z' };
    expect([end(first, 4), end(first, 5)]).toEqual([
      ['continue', 'continue'],
      ['ended', 'ended'],
    ]);
    expect([end(LATER, 49), end(LATER, 50)]).toEqual([
      ['continue', 'continue'],
      ['ended', 'ended'],
    ]);
  });

  it('counts only the wanted kinds, and leaves out no kind that is not known', () => {
    const kinds = (['short', null, 'live', 'video'] as const).map((kind) => ({ ...unlistedVideo('a'), kind }));
    expect(kinds.map((upload) => isWanted(upload, ['video']))).toEqual([false, true, true, true]);
    expect(kinds.map((upload) => isWanted(upload, ['live']))).toEqual([false, false, true, false]);
    const listed = kinds.map((upload, index) => ({ ...upload, videoId: `v${index}` }));
    const { added, end } = walkPage({ ...FIRST, start: 2, kinds: ['video'] }, pageOf(listed), new Map());
    expect(added.map(({ state }) => state)).toEqual(['seen', 'pending', 'pending', 'seen']);
    expect(end).toBe('ended');
  });
});
