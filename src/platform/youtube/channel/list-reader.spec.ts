import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import {
  alertPage,
  CHANNEL_ID,
  channelPage,
  continuedPage,
  movedPage,
  newToken,
  oldPage,
  oldToken,
  playlistPage,
  playlistVideo,
} from '../../../../test/pages/youtube-pages.js';
import { newScope } from '../../../../test/youtube/egresses.js';
import { unlistedVideo } from '../../../domain/transcript.js';
import { ContinuationRejectedError, type UploadsListPage } from '../../video-platform.js';
import { RetryBudget } from '../egress/attempt.js';
import { RequestQueue } from '../egress/request-queue.js';
import type { FailedResponse, UpstreamResponse } from '../egress/upstream-response.js';
import type { InnertubeQuery } from '../innertube/clients.js';
import { InnertubeClient, parsed } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ChannelReader } from './channel-reader.js';
import { ListAdditions, withAdditions } from './list-additions.js';
import { ListReader, type ListProgress, NOTHING_LISTED, pageAfter, readContinuation } from './list-reader.js';

Logger.overrideLogger(false);

const FEED: UpstreamResponse = { kind: 'ok', media: 'other', body: '<feed></feed>' };
const [A, B] = ['aaaaaaaaaaa', 'bbbbbbbbbbb'];

class Failed {
  constructor(readonly response: FailedResponse) {}
}

const failed = (status: number, media: 'json' | 'html' = 'json') => new Failed({ kind: 'http-error', status, media });

/**
 * The channels over a platform that answers each request with a page, or with a failure.
 *
 * @param respond the answer to a request for a token, or for a `browseId` or `url`
 */
function open(respond: (argument: string) => unknown, feed: UpstreamResponse = FEED, retries = 0) {
  const requested: string[] = [];
  const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ payload }: InnertubeQuery, parse: (response: unknown) => unknown) => {
      const argument = String(payload['continuation'] ?? payload['browseId'] ?? payload['url']);
      requested.push(argument);
      const response = respond(argument);
      return Promise.resolve(response instanceof Failed ? response.response : parsed(() => parse(response)));
    },
    fetchText: () => Promise.resolve(feed),
  });
  const metrics = new UpstreamMetrics(new Registry(), new RequestQueue(1));
  const lists = new ListReader(innertube, new ChannelReader(innertube), metrics);
  const additions = new ListAdditions(innertube, lists, metrics);
  const page = (after?: string, ofPage = retries) => lists.uploads(CHANNEL_ID, after, scope(ofPage));
  return {
    page,
    described: async () => {
      const read = await page();
      return withAdditions(read, await additions.read(CHANNEL_ID, Promise.resolve(), scope()));
    },
    requested,
  };
}

const scope = (retries = 0) => ({ ...newScope({ deadlineAtMs: Infinity }), budget: new RetryBudget(retries) });

const UPLOADS = `VLUU${CHANNEL_ID.slice(2)}`;
const SHORTS = `VLUUSH${CHANNEL_ID.slice(2)}`;
const ids = ({ uploads }: UploadsListPage) => uploads.map(({ videoId }) => videoId);
const kinds = ({ uploads }: UploadsListPage) => uploads.map(({ kind }) => kind);
/** The continuation after a first page. */
const after = (token: string) => `2:0/:${token}`;

describe('a page of all uploads', () => {
  const minute = (id: string) => playlistVideo(id, { lengthSeconds: '60' });

  it('has kinds as far as the newest Shorts and the lengths show them, and can be empty before the end', async () => {
    const hour = playlistVideo('hour_______', { lengthSeconds: '3600' });
    const pages: Record<string, unknown> = {
      [UPLOADS]: oldPage([minute('n1_________'), minute(A), minute('n3_________'), oldToken('2')]),
      [SHORTS]: oldPage([minute(A), oldToken('more')]),
      '2': continuedPage([newToken('3')]),
      '3': continuedPage([minute(B), hour]),
    };
    const { page, described, requested } = open((argument) => pages[argument]);
    expect(kinds(await page())).toEqual([null, null, null]);
    expect(requested.splice(0)).toEqual([UPLOADS]);
    const first = await described();
    expect(kinds(first)).toEqual(['video', 'short', null]);
    const second = await page(first.next ?? '');
    expect(second).toMatchObject({ uploads: [], pages: 2, incomplete: false });
    const last = await page(second.next ?? '');
    expect(kinds(last)).toEqual([null, 'video']);
    expect(last).toMatchObject({ next: null, pages: 3 });
    // One page of Shorts for the first page, and nothing beside a later one.
    expect(requested.sort()).toEqual(['2', '3', UPLOADS, SHORTS].sort());
  });

  it('goes on after a continuation of a former version, which carries Shorts', async () => {
    const { page, requested } = open(() => continuedPage([minute(B)]));
    for (const shorts of [';aaaaaaaaaaa;bbbbbbbbbbb;!MjowLzp4', ';;bbbbbbbbbbb;', ';;;'])
      expect(await page(`3${shorts}:200/201:a:b`)).toMatchObject({
        uploads: [{ videoId: B }],
        pages: 3,
        incomplete: false,
      });
    expect(requested).toEqual(['a:b', 'a:b', 'a:b']);
  });

  it.each([
    ['gets 400', failed(400)],
    ['gets 404', failed(404)],
    ['is that of a playlist that does not exist any more', alertPage('The playlist does not exist.')],
  ])('is to be read again from the first when its token %s', async (_, answer) => {
    await expect(open(() => answer).page(after('old'))).rejects.toThrow(ContinuationRejectedError);
  });

  it('of a channel that has moved is that of its new ID', async () => {
    const NEW_ID = `UC${'d'.repeat(22)}`;
    const pages: Record<string, unknown> = {
      [CHANNEL_ID]: movedPage(NEW_ID),
      [NEW_ID]: channelPage({ externalId: NEW_ID }),
      [`VLUU${NEW_ID.slice(2)}`]: oldPage([playlistVideo(A)]),
    };
    const { page } = open((argument) => pages[argument] ?? alertPage('The playlist does not exist.'));
    expect(ids(await page())).toEqual([A]);
  });
});

/** Responds to the requests with an argument in turn; the last response repeats. */
function byArgument(responses: Record<string, unknown[]>): (argument: string) => unknown {
  const counts = new Map<string, number>();
  return (argument) => {
    const list = responses[argument] ?? [alertPage('The playlist does not exist.')];
    const count = counts.get(argument) ?? 0;
    counts.set(argument, count + 1);
    return list[Math.min(count, list.length - 1)];
  };
}

const stating = (videos: number) => ({
  header: { playlistHeaderRenderer: { numVideosText: { simpleText: `${videos} videos` } } },
});
const [C, D] = ['ccccccccccc', 'ddddddddddd'];

describe('an incomplete page', () => {
  const whole = oldPage([playlistVideo(A)]);
  it.each([
    ['has no contents', {}, true],
    ['states an unknown error', alertPage('Unknown error'), true],
    ['has only a continuation', playlistPage([newToken('2')]), false],
    ['has an empty list', oldPage([]), true],
  ])('that %s is asked for again within the retries', async (_, page, ends) => {
    const once = open(byArgument({ [UPLOADS]: [page, whole] }));
    expect(ids(await once.page(undefined, 1))).toEqual([A]);
    expect(once.requested).toEqual([UPLOADS, UPLOADS]);
    const always = open(byArgument({ [UPLOADS]: [page] }));
    // One with a continuation is followed when it stays so: it hides its videos.
    const next = ends ? null : expect.any(String);
    expect(await always.page(undefined, 2)).toMatchObject({ uploads: [], next, incomplete: ends, hidden: null });
    expect(always.requested).toEqual([UPLOADS, UPLOADS, UPLOADS]);
  });
});

describe('the end of a list', () => {
  const unknown = { continuationSlotViewModel: {} };
  const minutes = (...names: string[]) => names.map((id) => playlistVideo(id));

  it.each([
    ['the header agrees', oldPage(minutes(A, B), stating(2)), false, 0],
    ['the header states nothing and everything was read', oldPage(minutes(A, B)), false, 0],
    ['the header agrees, whatever the last entry is', oldPage([...minutes(A, B), unknown], stating(2)), false, 0],
    ['the last entry can be a continuation', oldPage([...minutes(A, B), unknown]), true, null],
    [
      'the last entry can be one, and the header states more',
      oldPage([...minutes(A, B), unknown], stating(9)),
      true,
      null,
    ],
    ['an entry could not be read', oldPage([unknown, ...minutes(A, B)]), true, 0],
    ['the header states more', oldPage(minutes(A, B), stating(5)), true, 3],
  ])('when %s', async (_, page, incomplete, hidden) => {
    const read = await open(byArgument({ [UPLOADS]: [page] })).page();
    expect(read).toMatchObject({ next: null, incomplete, hidden });
    expect(ids(read)).toEqual([A, B]);
  });

  it('is not the end of a channel that has Shorts only, whose list goes on', async () => {
    const pages = {
      [UPLOADS]: [oldPage(minutes(A, B), stating(4))],
      [SHORTS]: [oldPage([...minutes(A, B, C), oldToken('more')], stating(4))],
      more: [continuedPage(minutes(D))],
    };
    const { described, page } = open(byArgument(pages));
    const first = await described();
    expect([ids(first), new Set(kinds(first))]).toEqual([[A, B, C], new Set(['short'])]);
    expect(await page(first.next ?? '')).toMatchObject({ uploads: [{ videoId: D }], next: null, incomplete: false });
    const mixed = await open(byArgument({ ...pages, [SHORTS]: [oldPage(minutes(A, C, D))] })).described();
    expect([ids(mixed), mixed.next, mixed.incomplete]).toEqual([[A, B], null, true]);
  });

  it('is not there on a page that leads to itself', async () => {
    const { page } = open(byArgument({ '2': [continuedPage([newToken('2')])] }));
    expect(await page(after('2'))).toMatchObject({ next: null, incomplete: true, hidden: null });
  });
});

describe('the feed', () => {
  const entry = (id: string, path: string) =>
    `<entry><yt:videoId>${id}</yt:videoId><link rel="alternate" href="https://www.youtube.com/${path}${id}"/>` +
    '<published>2026-05-21T11:22:05Z</published></entry>';
  const minutes = [A, B].map((id) => playlistVideo(id, { lengthSeconds: '60' }));

  it('has dates, and the kind of the Shorts that it links as such', async () => {
    const body = `<feed>${entry(A, 'shorts/')}${entry(B, 'watch?v=')}</feed>`;
    const { described } = open(byArgument({ [UPLOADS]: [oldPage(minutes)] }), { ...FEED, body });
    expect((await described()).uploads).toMatchObject([
      { kind: 'short', publishedAt: '2026-05-21T11:22:05Z' },
      { kind: null, publishedAt: '2026-05-21T11:22:05Z' },
    ]);
  });

  it('that is not found leaves the dates unknown', async () => {
    const notFound = { kind: 'http-error', status: 404, media: 'html' } as const;
    const { described } = open(byArgument({ [UPLOADS]: [oldPage(minutes)] }), notFound);
    expect((await described()).uploads).toMatchObject([{ publishedAt: null }, { publishedAt: null }]);
  });
});

interface Read {
  count: number;
  stated?: number;
  unread?: 'nothing' | 'entry' | 'end';
}

/** The last of some pages of a list. */
function lastOf(pages: readonly Read[]) {
  return pages.reduce(
    ({ progress }, { count, stated = null, unread = 'nothing' }, index) => {
      const uploads = Array.from({ length: count }, (_, place) => unlistedVideo(String(place).padStart(11, '0')));
      const isLast = index === pages.length - 1;
      const page = pageAfter(progress, { uploads, next: isLast ? null : 'token', stated, unread });
      return { page, progress: readContinuation(page.next ?? '')?.progress ?? NOTHING_LISTED };
    },
    {
      page: pageAfter(NOTHING_LISTED, { uploads: [], next: null, stated: null, unread: 'nothing' }),
      progress: NOTHING_LISTED,
    },
  ).page;
}

describe('what the last page of a list states', () => {
  it.each<[string, Read[], boolean, number | null]>([
    ['the header agrees', [{ count: 100, stated: 150 }, { count: 50 }], true, 0],
    ['it stops at 100', [{ count: 100, stated: 240 }], false, 140],
    ['it stops at 200', [{ count: 100, stated: 890 }, { count: 100 }], false, 690],
    ['it stops at 100 of 101', [{ count: 100, stated: 101 }], false, 1],
    ['it has the 100 that are stated', [{ count: 100, stated: 100 }], true, 0],
    ['it stops in a page', [{ count: 5, stated: 15 }], false, 10],
    ['one of a few is hidden without a notice', [{ count: 10, stated: 11 }], true, 1],
    ['some of many are hidden without a notice', [{ count: 100, stated: 150 }, { count: 48 }], true, 2],
    ['the header states nothing', [{ count: 100 }, { count: 100 }], true, 0],
    ['more was listed than stated', [{ count: 12, stated: 10 }], true, 0],
    ['it is empty', [{ count: 0, stated: 0 }], true, 0],
    ['something was unread and the header agrees', [{ count: 5, stated: 5, unread: 'entry' }], true, 0],
    ['something was unread and the header states more', [{ count: 5, stated: 6, unread: 'entry' }], false, 1],
    ['a page before ended unread and the header states nothing', [{ count: 5, unread: 'end' }, { count: 3 }], false, 0],
    ['it ends unread', [{ count: 5, stated: 9, unread: 'end' }], false, null],
  ])('when %s', (_, pages, complete, hidden) => {
    expect(lastOf(pages)).toMatchObject({ next: null, incomplete: !complete, hidden, pages: pages.length });
  });

  it('is the page 5,000, since a list that goes on repeats itself', () => {
    const next = (pages: number) =>
      pageAfter({ ...NOTHING_LISTED, pages }, { uploads: [], next: 'token', stated: null, unread: 'nothing' });
    expect(next(4_998).next).toMatch(/^5000:/);
    expect(next(4_999)).toMatchObject({ next: null, incomplete: true, hidden: null, pages: 5_000 });
  });
});

describe('a continuation', () => {
  it.each<ListProgress>([
    { pages: 1, listed: 100, expected: 890, unread: false },
    { pages: 4_998, listed: 0, expected: null, unread: true },
    { pages: 2, listed: 200, expected: 0, unread: true },
  ])('carries %j and the token', (progress) => {
    for (const token of ['abc', 'a:b', '4qmFsg%3D%3D', '12:3/4:x', ';a;b;c:d']) {
      const { next } = pageAfter(progress, { uploads: [], next: token, stated: null, unread: 'nothing' });
      expect(readContinuation(next ?? '')).toEqual({ progress: { ...progress, pages: progress.pages + 1 }, token });
    }
  });

  it.each([
    '4;aaaaaaaaaaabbbbb-_bbbb;ccccccccccc;!MjowLzp4O3k6eiUzRA:300/890:a:b',
    '4;;ccccccccccc;MjowLzp4:300/890:a:b',
    '4;aaaaaaaaaaa;;:300/890:a:b',
    '4:300/890:a:b',
  ])('of a former version (%s), which can carry Shorts, goes on', (text) => {
    const progress = { pages: 3, listed: 300, expected: 890, unread: false };
    expect(readContinuation(text)).toEqual({ progress, token: 'a:b' });
  });

  it.each(['', 'abc', '3:', '3:abc:d', ':abc', 'x:abc', '2;:0/:', '2;;;%:abc'])('is not %j', (text) => {
    expect(readContinuation(text)).toBeNull();
  });
});
