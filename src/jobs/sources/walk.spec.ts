import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { unlistedVideo, type Upload } from '../../domain/transcript.js';
import type { UploadsListPage } from '../../platform/video-platform.js';
import type { Start } from '../job.js';
import { isWanted, walkPage, type AddedState, type KnownUpload, type WaitingStart, type Walk } from './walk.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const CREATED_AT_MS = Date.parse('2026-06-01T12:00:00Z');
const PAGE_SIZE = 100;
const DATED = 15;
/** Uploads that appear between the pages of a check. */
const MEANWHILE = 3;
/** So far a check looks for an upload that was seen below others that have dates before it. */
const DATELESS_DEPTH = 10 * PAGE_SIZE - MEANWHILE;
/** Beyond so many old uploads a list is odd. */
const ODD_MIN = 20;
/** The uploads that are on the first page that a check reads, which can be after a page that failed. */
const FIRST_PAGE = PAGE_SIZE - MEANWHILE;

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
  /** Whether its list is read in the wrong order. */
  isOldestFirst = false;
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

  /** Lists uploads above all others that are dated before the subscription. */
  publishBackdated(count: number): void {
    for (let index = 0; index < count; index++) this.add(CREATED_AT_MS - 40 * DAY_MS, null);
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
    const list = this.isOldestFirst ? this.visible.reverse() : this.visible;
    const uploads = list.slice(offset, offset + PAGE_SIZE).map((video, index) => this.upload(video, offset + index));
    const isLast = offset + PAGE_SIZE >= this.visible.length;
    const pages = offset / PAGE_SIZE + 1;
    return {
      uploads,
      next: isLast ? null : String(offset + PAGE_SIZE),
      incomplete: isLast && incomplete,
      hidden: null,
      pages,
    };
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

interface Row {
  position: number;
  state: AddedState;
  isOld: boolean;
  isRanked: boolean;
  upload: Upload;
}

/** A source with one subscription, which stores what the walks find and takes it, as the database does. */
class Source {
  readonly rows = new Map<string, Row>();
  readonly taken = new Set<string>();
  seesAll = false;
  seenPosition: number | null = null;
  /** The old uploads of an odd list, which another read has to have too. */
  odd: string | null = null;
  private seenAtMs = CREATED_AT_MS;
  private continuation: string | null = null;
  private lastPosition = 0;
  private place = -1;
  private walk = { added: 0, ranked: [] as Upload[], forStarts: false };

  constructor(private readonly start: Start) {}

  /** Reads one page. @returns whether the walk goes on */
  step(channel: Channel, fault: Fault): boolean {
    if (fault === 'crash') return true;
    if (fault === 'rejected') {
      this.continuation = null;
      return true;
    }
    const isFirstPage = this.continuation === null;
    if (isFirstPage) {
      for (const [id, { state }] of this.rows) if (state === 'undecided') this.rows.delete(id);
      for (const row of this.rows.values()) row.isRanked = false;
      this.walk = { added: 0, ranked: [], forStarts: false };
    }
    const page = channel.page(Number(this.continuation ?? 0), fault === 'incomplete');
    const { added, ranked, forStarts } = this.walk;
    const walk: Walk = {
      ...{
        kind: 'channel',
        isFirst: this.seenPosition === null,
        starts: this.waiting(),
        listed: ranked.length,
        forStarts,
      },
      ...{ createdAtMs: CREATED_AT_MS, seenAtMs: this.seenAtMs, seesAll: this.seesAll, added, hidden: null },
    };
    const step = walkPage(walk, page, this.known(page), channel.nowMs);
    for (const row of this.rows.values()) if (row.state === 'undecided') row.state = step.decided;
    this.seesAll = step.seesAll;
    for (const { upload, ...added } of step.added) {
      expect(this.rows.has(upload.videoId)).toBe(false);
      this.rows.set(upload.videoId, { position: ++this.lastPosition, isRanked: false, upload, ...added });
    }
    for (const upload of step.changed) this.row(upload.videoId).upload = upload;
    for (const { videoId } of step.ranked) this.row(videoId).isRanked = true;
    this.walk = { added: added + step.added.length, ranked: [...ranked, ...step.ranked], forStarts: step.forStarts };
    this.continuation = step.end === 'continue' ? page.next : null;
    if (step.end === 'continue') return true;
    if (step.end === 'ended' && !isFirstPage && this.walk.added > 0) return true;
    if (step.end === 'ended') this.end(channel.nowMs);
    return false;
  }

  /** Whether an earlier walk has seen an upload. */
  sees({ id }: Video): boolean {
    return (this.rows.get(id)?.position ?? Infinity) <= (this.seenPosition ?? 0);
  }

  /** The uploads that a walk must deliver whatever their dates are. */
  dateless({ visible }: Channel): string[] {
    if (this.seesAll) return visible.slice(0, FIRST_PAGE).flatMap((video) => (this.sees(video) ? [] : [video.id]));
    const highest = visible.findIndex((video) => this.sees(video));
    const lowest = visible.slice(0, FIRST_PAGE).findLastIndex((video) => this.sees(video));
    const above = visible.slice(0, Math.max(highest < DATELESS_DEPTH ? highest : 0, lowest, 0));
    return above.flatMap((video) => (this.sees(video) ? [] : [video.id]));
  }

  row(id: string): Row {
    const row = this.rows.get(id);
    if (!row) throw new Error(`${id} is not known.`);
    return row;
  }

  private waiting(): WaitingStart[] {
    const { start, place } = this;
    if (place >= 0 || start === 'now' || this.walk.ranked.some(({ videoId }) => videoId === start)) return [];
    return [{ start, kinds: [], listed: this.walk.ranked.length }];
  }

  private end(nowMs: number): void {
    const seen = this.seenPosition;
    const found = [...this.rows].filter(([, { position }]) => seen !== null && position > seen);
    const old = found.flatMap(([id, { state, isOld }]) => (state === 'new' && isOld ? [id] : []));
    const odd = old.sort().join();
    if (old.length > ODD_MIN && odd !== this.odd) {
      for (const [id] of found) this.rows.delete(id);
      this.odd = odd;
      return;
    }
    [this.odd, this.seenPosition, this.seenAtMs] = [null, this.lastPosition, nowMs];
    this.take(this.lastPosition);
  }

  private take(end: number): void {
    const { start, place } = this;
    const { ranked } = this.walk;
    const begin = typeof start === 'string' ? ranked.findIndex(({ videoId }) => videoId === start) : start;
    const first = new Set(ranked.slice(0, Math.max(0, begin)).map(({ videoId }) => videoId));
    for (const [id, { state, position, upload }] of this.rows) {
      const isNew =
        place < 0 ? Date.parse(upload.publishedAt ?? '') > CREATED_AT_MS : state === 'new' && position > place;
      if (isNew || (place < 0 && first.has(id))) this.taken.add(id);
    }
    this.place = end;
  }

  private known({ uploads }: UploadsListPage): Map<string, KnownUpload> {
    const entries = uploads.flatMap(({ videoId }): [string, KnownUpload][] => {
      const row = this.rows.get(videoId);
      if (!row) return [];
      const seen = this.seenPosition !== null && row.position <= this.seenPosition;
      return [[videoId, { seen, listed: row.state === 'seen' && !row.isRanked ? undefined : row.upload }]];
    });
    return new Map(entries);
  }
}

type Fault = 'none' | 'rejected' | 'crash' | 'incomplete';
const FAULT = fc.constantFrom<Fault[]>('none', 'none', 'none', 'rejected', 'crash', 'incomplete');
const PLACE = fc.nat(400);
const CHANGE = fc.oneof(
  fc.record({
    type: fc.constantFrom('publish' as const, 'publish_backdated' as const),
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
    case 'publish_backdated':
      return channel.publishBackdated(change.count);
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

/** Checks until the walk ends, and again when the list was odd; uploads appear between its pages. */
function check(channel: Channel, source: Source, faults: readonly Fault[], published = MEANWHILE): void {
  const dateless = source.seenPosition === null ? [] : source.dateless(channel);
  for (let page = 0; source.step(channel, faults[page] ?? 'none'); page++) if (page < published) channel.publish(1);
  if (faults.includes('incomplete')) return;
  if (source.odd !== null) while (source.step(channel, 'none'));
  expect(dateless.filter((id) => !source.taken.has(id))).toEqual([]);
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
  // It stands below some with older dates.
  [
    ...([200, [], 'video1'] as [number, number[], Start]),
    [
      { type: 'swap', place },
      { type: 'publish_backdated', count: 198 },
      { type: 'check', faults: [] },
    ],
  ],
  // An upload at the end of the first page is public again, and moves to the second one before a check reads it.
  [
    ...([150, [97], 'video0'] as [number, number[], Start]),
    [
      { type: 'show', place: 98 },
      { type: 'check', faults: ['crash', 'rejected'] },
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
          const source = new Source(start);
          const begin = typeof start === 'string' ? listed.indexOf(start) : start;
          const first = listed.slice(0, start === 'now' ? 0 : Math.max(0, Number(begin)));
          check(channel, source, []);
          expect([...source.taken].filter((id) => listed.includes(id)).sort()).toEqual([...first].sort());

          const hiddenOnce = new Set(hiddenFirst);
          const moved = new Set<string>();
          for (const change of changes) {
            if (change.type === 'swap')
              for (const { id } of channel.videos.slice(change.place, change.place + 2)) moved.add(id);
            if (change.type === 'check') check(channel, source, change.faults);
            else apply(channel, change);
            for (const { id, hidden } of channel.videos) if (hidden) hiddenOnce.add(id);
          }
          check(channel, source, [], 0);

          const delivered = source.taken;
          const required = channel.visible.filter(
            ({ id, publishedAtMs }) => publishedAtMs > CREATED_AT_MS && !hiddenOnce.has(id),
          );
          expect(required.filter(({ id }) => !delivered.has(id))).toEqual([]);
          // What was private for a time and is public again is new, where no check has met it before; so is what moves above
          // an upload that was seen.
          const isDoubtful = (id: string) => hiddenOnce.has(id) || moved.has(id);
          const tooOld = listed.filter((id) => !first.includes(id) && delivered.has(id) && !isDoubtful(id));
          expect(tooOld).toEqual([]);
          const onFirstPage = required.filter((video) => channel.visible.indexOf(video) < PAGE_SIZE);
          for (const { id, failure } of onFirstPage) expect(source.row(id).upload.failure).toBe(failure);
        },
      ),
      { numRuns: 200, examples: EXAMPLES },
    );
  });
});

describe('a list that is read in the wrong order once', () => {
  it('delivers nothing that is old, and after it everything that is new', () => {
    fc.assert(
      fc.property(fc.integer({ min: 125, max: 350 }), fc.nat(5), (count, published) => {
        const channel = new Channel(count, []);
        const source = new Source('now');
        while (source.step(channel, 'none'));
        const former = new Set(channel.visible.map(({ id }) => id));
        channel.nowMs += 3 * DAY_MS;
        channel.isOldestFirst = true;
        while (source.step(channel, 'none'));
        channel.isOldestFirst = false;
        channel.publish(published);
        while (source.step(channel, 'none'));
        expect([...source.taken].filter((id) => former.has(id))).toEqual([]);
        expect(source.taken.size).toBe(published);
      }),
      { numRuns: 50 },
    );
  });
});

describe('a walk', () => {
  const FIRST: Walk = {
    ...{ kind: 'channel', isFirst: true, starts: [], listed: 0, forStarts: false, hidden: null },
    ...{ createdAtMs: CREATED_AT_MS, seenAtMs: CREATED_AT_MS, seesAll: false, added: 0 },
  };
  const LATER: Walk = { ...FIRST, isFirst: false };
  const waiting = (start: WaitingStart['start'], listed = 0): WaitingStart => ({ start, kinds: [], listed });
  const uploads = ['a', 'b', 'c'].map((id) => unlistedVideo(id));
  const pageOf = (list: Upload[], pages = 1): UploadsListPage => ({
    uploads: list,
    next: 'next',
    incomplete: false,
    hidden: null,
    pages,
  });
  const seen = (...ids: string[]) => new Map(ids.map((id) => [id, { seen: true }]));
  const pending = (walk: Walk, known: ReadonlyMap<string, KnownUpload>) =>
    walkPage(walk, pageOf(uploads), known).added.flatMap(({ upload, state }) =>
      state === 'new' ? [upload.videoId] : [],
    );

  it('takes what is above the last seen upload for new, whatever the dates of both are', () => {
    const dated = uploads.map((upload, index) => ({ ...upload, publishedAt: `2026-01-0${index + 1}T00:00:00Z` }));
    for (const list of [uploads, dated])
      expect(walkPage(LATER, pageOf(list.slice(0, 2)), seen('b')).added).toMatchObject([{ state: 'new' }]);
  });

  it('takes what is below the last seen upload for older, unless every upload was seen', () => {
    expect(pending(LATER, seen('b'))).toEqual(['a']);
    expect(pending({ ...LATER, seesAll: true }, seen('b'))).toEqual(['a', 'c']);
  });

  it('takes an empty list for an error of the platform: its uploads can be older', () => {
    const sees = (list: Upload[]) => walkPage(FIRST, { ...pageOf(list), next: null }, new Map()).seesAll;
    expect([sees(uploads), sees([])]).toEqual([true, false]);
  });

  it('leaves older uploads undecided until it meets a seen one below them, within ten pages', () => {
    const nowMs = CREATED_AT_MS + 40 * DAY_MS;
    const aged = uploads.map((upload) => ({ ...upload, publishedText: '3 months ago' }));
    const step = (pages: number, known: ReadonlyMap<string, KnownUpload>, next: string | null = 'next') => {
      const { added, decided, end } = walkPage(LATER, { ...pageOf(aged, pages), next }, known, nowMs);
      return [...added.map(({ state }) => state), decided, end];
    };
    const undecided = ['undecided', 'undecided', 'undecided'];
    expect(step(9, new Map())).toEqual([...undecided, 'undecided', 'continue']);
    expect(step(10, new Map())).toEqual(['seen', 'seen', 'seen', 'seen', 'ended']);
    expect(step(2, new Map(), null)).toEqual(['seen', 'seen', 'seen', 'seen', 'ended']);
    expect(step(9, seen('b'))).toEqual(['new', 'seen', 'new', 'ended']);
    // Of a page, too, of which less was seen than is below.
    expect(step(9, seen('a'))).toEqual(['undecided', 'undecided', 'new', 'continue']);
    expect(step(10, seen('a'))).toEqual(['seen', 'seen', 'new', 'ended']);
  });

  it('goes on below a seen upload that stands among new ones, and ends at what is older than the walk before', () => {
    const nowMs = CREATED_AT_MS + 40 * DAY_MS;
    const walk = { ...LATER, seenAtMs: nowMs - 2 * DAY_MS };
    const step = (publishedText: string | null) => {
      const aged = [...uploads, unlistedVideo('d')].map((upload) => ({ ...upload, publishedText }));
      const { added, end } = walkPage(walk, pageOf(aged), seen('a', 'b'), nowMs);
      return [...added.map(({ state }) => state), end];
    };
    expect(step('23 hours ago')).toEqual(['new', 'new', 'continue']);
    expect(step('1 month ago')).toEqual(['seen', 'seen', 'ended']);
    expect(step(null)).toEqual(['seen', 'seen', 'ended']);
  });

  it('goes no deeper than 500 uploads for its start, nor than 5,000 for a seen one', () => {
    const end = (walk: Walk) => walkPage(walk, pageOf(uploads, 13), new Map()).end;
    const first = { ...FIRST, starts: [waiting('z')] };
    expect([end({ ...first, listed: 496 }), end({ ...first, listed: 497 })]).toEqual(['continue', 'ended']);
    expect([end({ ...LATER, added: 4_996 }), end({ ...LATER, added: 4_997 })]).toEqual(['continue', 'ended']);
  });

  it('reads on for a start below what was seen, where nothing is new', () => {
    const step = (walk: Walk) => walkPage(walk, pageOf(uploads), seen('a', 'b'));
    expect(step({ ...LATER, starts: [waiting('z')] })).toMatchObject({ end: 'continue', forStarts: true });
    expect(step({ ...LATER, starts: [waiting('b'), waiting(4, 1)] })).toMatchObject({ end: 'ended', forStarts: true });
    const deeper = walkPage({ ...LATER, forStarts: true, starts: [waiting('c')] }, pageOf(uploads), new Map());
    expect(deeper.added.map(({ state }) => state)).toEqual(['seen', 'seen', 'seen']);
    expect(deeper).toMatchObject({ end: 'ended', ranked: uploads });
  });

  it('takes anything in a playlist for new that the first walk has not seen, and reads it to its end', () => {
    const later: Walk = { ...LATER, kind: 'playlist' };
    const states = (walk: Walk) => walkPage(walk, pageOf(uploads), seen('a')).added.map(({ state }) => state);
    expect([states({ ...later, isFirst: true }), states(later)]).toEqual([
      ['seen', 'seen'],
      ['new', 'new'],
    ]);
    const end = (pages: number, next: string | null) =>
      walkPage(later, { ...pageOf(uploads, pages), next }, seen('a', 'b', 'c')).end;
    expect([end(49, 'next'), end(50, 'next'), end(2, null)]).toEqual(['continue', 'ended', 'ended']);
  });

  it('believes an end before the stated number when it was confirmed', () => {
    const end = (hidden: number | null, known: number | null) =>
      walkPage({ ...LATER, hidden: known }, { ...pageOf([]), next: null, incomplete: true, hidden }, new Map()).end;
    expect([end(3, null), end(3, 2), end(null, null), end(3, 3)]).toEqual([
      'read_again',
      'read_again',
      'read_again',
      'ended',
    ]);
  });

  it('ends at the page 500 of a list whose pages add nothing', () => {
    const end = (walk: Walk, pages: number) => walkPage(walk, pageOf([], pages), new Map()).end;
    for (const walk of [FIRST, LATER]) expect([end(walk, 499), end(walk, 500)]).toEqual(['continue', 'ended']);
  });

  it('counts only the wanted kinds, and leaves out no kind that is not known', () => {
    const kinds = (['short', null, 'live', 'video'] as const).map((kind) => ({ ...unlistedVideo('a'), kind }));
    expect(kinds.map((upload) => isWanted(upload, ['video']))).toEqual([false, true, true, true]);
    expect(kinds.map((upload) => isWanted(upload, ['live']))).toEqual([false, false, true, false]);
    const listed = kinds.map((upload, index) => ({ ...upload, videoId: `v${index}` }));
    const step = (start: number) =>
      walkPage({ ...FIRST, starts: [{ ...waiting(start), kinds: ['video'] }] }, pageOf(listed), new Map()).end;
    expect([step(3), step(4)]).toEqual(['ended', 'continue']);
  });
});
