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
import { ContinuationRejectedError, type UploadsListPage } from '../../video-platform.js';
import { RequestQueue } from '../egress/request-queue.js';
import { RetryBudget } from '../egress/attempt.js';
import type { FailedResponse, UpstreamResponse } from '../egress/upstream-response.js';
import type { InnertubeQuery } from '../innertube/clients.js';
import { InnertubeClient, parsed } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ChannelReader } from './channel-reader.js';
import { ListAdditions, withAdditions } from './list-additions.js';
import { ListReader } from './list-reader.js';

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
