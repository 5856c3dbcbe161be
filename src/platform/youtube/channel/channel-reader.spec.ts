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
  redirectedUrl,
} from '../../../../test/pages/youtube-pages.js';
import { newScope } from '../../../../test/youtube/egresses.js';
import { ContinuationRejectedError, type KnownUploads } from '../../video-platform.js';
import { RequestQueue } from '../egress/request-queue.js';
import { RetryBudget } from '../egress/retry.js';
import type { FailedResponse, UpstreamResponse } from '../egress/upstream-response.js';
import type { InnertubeQuery } from '../innertube/clients.js';
import { InnertubeClient, parsed } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ChannelReader } from './channel-reader.js';
import { isComplete, NOTHING_LISTED, type ShortsBeside } from './list-progress.js';
import { PlaylistReader, type ReadUploads } from './playlist-reader.js';

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
  const playlists = new PlaylistReader(innertube, metrics);
  const channels = new ChannelReader(innertube, playlists);
  return {
    list: (count = 1, known?: KnownUploads, ofList = retries) =>
      channels.uploads(CHANNEL_ID, count, scope(ofList), known),
    first: (described: boolean) => channels.uploadsPage(CHANNEL_ID, null, described, scope(retries)),
    next: (token: string, shorts?: ShortsBeside, described = true) =>
      channels.uploadsPage(CHANNEL_ID, { token, progress: NOTHING_LISTED, shorts }, described, scope()),
    resolve: () => channels.resolve({ kind: 'handle', handle: 'somebody' }, scope(retries)),
    read: () => channels.read(CHANNEL_ID, scope(retries)),
    requested,
  };
}

const scope = (retries = 0) => ({ ...newScope({ deadlineAtMs: Infinity }), budget: new RetryBudget(retries) });

const UPLOADS = `VLUU${CHANNEL_ID.slice(2)}`;
const SHORTS = `VLUUSH${CHANNEL_ID.slice(2)}`;
const ids = ({ uploads }: ReadUploads) => uploads.map(({ videoId }) => videoId);

describe('a page of all uploads', () => {
  it('has kinds as far as the newest Shorts and the lengths show them, and can be empty before the end', async () => {
    const minute = (id: string) => playlistVideo(id, { lengthSeconds: '60' });
    const hour = playlistVideo('hour_______', { lengthSeconds: '3600' });
    const pages: Record<string, unknown> = {
      [UPLOADS]: oldPage([minute('n1_________'), minute(A), minute('n3_________'), oldToken('2')]),
      [SHORTS]: oldPage([minute(A), oldToken('more')]),
      '2': continuedPage([newToken('3')]),
      '3': continuedPage([minute(B), hour]),
    };
    const { first: firstPage, next, requested } = open((argument) => pages[argument]);
    const stated = await firstPage(false);
    expect(stated.uploads.map(({ kind }) => kind)).toEqual([null, null, null]);
    expect(requested.splice(0)).toEqual([UPLOADS]);
    const first = await firstPage(true);
    expect(first.uploads.map(({ kind }) => kind)).toEqual(['video', 'short', null]);
    expect(first.next).toBe('2');
    expect(await next('2')).toMatchObject({ uploads: [], next: '3' });
    const last = await next('3');
    expect(last.uploads.map(({ kind }) => kind)).toEqual([null, 'video']);
    expect(last.next).toBeNull();
    // One page of Shorts beside the first page, and nothing beside a later one without what was read of them.
    expect(requested.sort()).toEqual(['2', '3', UPLOADS, SHORTS].sort());
  });

  describe('after the first, with the list of Shorts', () => {
    const id = (name: string, number: number) => `${name}${number}`.padEnd(11, '_');
    const videos = (name: string, ...numbers: number[]) =>
      numbers.map((number) => playlistVideo(id(name, number), { lengthSeconds: '60' }));
    const fiveMore = videos('short', 11, 12, 13, 14, 15);
    const PAGES = {
      [UPLOADS]: oldPage([...videos('video', 1), ...videos('short', 1), oldToken('2')]),
      [SHORTS]: oldPage([...videos('short', 1), oldToken('s2')]),
      '2': continuedPage([...videos('video', 2), ...videos('short', 2), ...videos('video', 3), newToken('3')]),
      '3': continuedPage([...videos('short', 3), ...videos('video', 4), newToken('4')]),
      '4': continuedPage([playlistVideo(id('long', 1), { lengthSeconds: '600' }), ...videos('video', 5)]),
      s2: continuedPage([...videos('short', 2, 3), newToken('s3')]),
      s3: continuedPage([...fiveMore, newToken('s4')]),
    };

    async function pages(responses: Record<string, unknown>, described = true) {
      const { first, next, requested } = open((argument) => responses[argument]);
      const read = [await first(true)];
      requested.splice(0);
      for (let page = read[0]; page?.next; page = read.at(-1)) read.push(await next(page.next, page.shorts, described));
      return { kinds: read.map(({ uploads }) => uploads.map(({ kind }) => kind)), requested };
    }

    it('has every kind, and reads on only while a video of it can be a Short that was not read', async () => {
      const { kinds, requested } = await pages(PAGES);
      expect(kinds).toEqual([
        ['video', 'short'],
        ['video', 'short', 'video'],
        ['short', 'video'],
        ['video', 'video'],
      ]);
      expect(requested).toEqual(['2', 's2', 's3', '3', '4']);
    });

    it('is not requested for a caller who wants no kinds', async () => {
      const { kinds, requested } = await pages(PAGES, false);
      expect(kinds.slice(1)).toEqual([
        [null, null, null],
        [null, null],
        ['video', null],
      ]);
      expect(requested).toEqual(['2', '3', '4']);
    });

    it('has unknown kinds where the list cannot be read, and where it may have passed Shorts since', async () => {
      let failures = 1;
      const responses = { ...PAGES };
      Object.defineProperty(responses, 's2', { get: () => (failures-- > 0 ? failed(500) : PAGES.s2) });
      const { kinds, requested } = await pages(responses);
      // The second page of Shorts has one that stands above this page, and one in it.
      expect(kinds.slice(1)).toEqual([
        [null, null, null],
        ['short', 'video'],
        ['video', 'video'],
      ]);
      expect(requested).toEqual(['2', 's2', '3', 's2', 's3', '4']);
    });

    it('reads three pages of it at the most, and the next page the following ones', async () => {
      let failures = 1;
      const more = (number: number, token: string) => continuedPage([...videos('short', number), newToken(token)]);
      const small = { a: more(22, 'b'), b: more(23, 'c'), c: continuedPage(videos('short', 2, 3)) };
      const responses = { ...PAGES, ...small };
      Object.defineProperty(responses, 's2', { get: () => (failures-- > 0 ? failed(500) : more(21, 'a')) });
      const { kinds, requested } = await pages(responses);
      expect(kinds.slice(1)).toEqual([
        [null, null, null],
        [null, null],
        ['video', 'video'],
      ]);
      expect(requested).toEqual(['2', 's2', '3', 's2', 'a', 'b', '4', 'c']);
    });
  });

  it.each([
    ['gets 400', failed(400)],
    ['gets 404', failed(404)],
    ['is that of a playlist that does not exist any more', alertPage('The playlist does not exist.')],
  ])('is to be read again from the first when its token %s', async (_, answer) => {
    await expect(open(() => answer).next('old')).rejects.toThrow(ContinuationRejectedError);
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
    ['has no contents', {}],
    ['states an unknown error', alertPage('Unknown error')],
    ['has only a continuation', playlistPage([newToken('2')])],
    ['has an empty list', oldPage([])],
  ])('that %s is asked for again within the retries', async (_, incomplete) => {
    const once = open(byArgument({ [UPLOADS]: [incomplete, whole] }));
    expect(ids(await once.list(1, undefined, 1))).toEqual([A]);
    expect(once.requested.filter((argument) => argument === UPLOADS)).toHaveLength(2);
    const always = open(byArgument({ [UPLOADS]: [incomplete] }));
    await expect(always.list(1, undefined, 2)).rejects.toMatchObject({ code: 'upstream_failure' });
    expect(always.requested.filter((argument) => argument === UPLOADS)).toHaveLength(3);
  });

  it('with a continuation only is followed when it stays so: it hides its videos', async () => {
    const { list } = open(
      byArgument({ [UPLOADS]: [playlistPage([newToken('2')])], '2': [continuedPage([playlistVideo(A)])] }),
    );
    expect(ids(await list())).toEqual([A]);
  });

  it('of a channel or a name is asked for again, too', async () => {
    const { read, resolve } = open(byArgument({ [CHANNEL_ID]: [{}, channelPage()] }), FEED, 1);
    await expect(read()).resolves.toMatchObject({ id: CHANNEL_ID });
    await expect(resolve()).rejects.toMatchObject({ code: 'upstream_failure' });
  });
});

describe('the end of a list', () => {
  const unknown = { continuationSlotViewModel: {} };
  const minutes = (...names: string[]) => names.map((id) => playlistVideo(id));

  it('is complete when the header agrees, or states nothing and everything was read', async () => {
    const end = async (page: unknown) => isComplete((await open(byArgument({ [UPLOADS]: [page] })).list()).progress);
    expect(await end(oldPage(minutes(A, B)))).toBe(true);
    expect(await end(oldPage(minutes(A, B), stating(2)))).toBe(true);
    expect(await end(oldPage([...minutes(A, B), unknown], stating(2)))).toBe(true);
    expect(await end(oldPage([...minutes(A, B), unknown]))).toBe(false);
    expect(await end(oldPage([unknown, ...minutes(A, B)]))).toBe(false);
    expect(await end(oldPage(minutes(A, B), stating(5)))).toBe(false);
  });

  it('is not believed for a call that needs more, when the list ends with what cannot be read', async () => {
    const { list } = open(byArgument({ [UPLOADS]: [oldPage([...minutes(A, B), unknown], stating(15))] }));
    expect(ids(await list(2))).toEqual([A, B]);
    await expect(list(3)).rejects.toMatchObject({ code: 'upstream_failure' });
  });

  it('is not the end of a channel that has Shorts only, whose list goes on', async () => {
    const pages = {
      [UPLOADS]: [oldPage(minutes(A, B), stating(4))],
      [SHORTS]: [oldPage([...minutes(A, B, C), oldToken('more')], stating(4))],
    };
    const list = await open(byArgument(pages)).list();
    expect([ids(list), list.next]).toEqual([[A, B, C], 'more']);
    expect(new Set(list.uploads.map(({ kind }) => kind))).toEqual(new Set(['short']));
    const unstated = { ...pages, [UPLOADS]: [oldPage(minutes(A, B))] };
    expect(await open(byArgument(unstated)).list()).toMatchObject({ next: 'more' });
    const stated = { ...pages, [UPLOADS]: [oldPage(minutes(A, B), stating(2))] };
    expect(await open(byArgument(stated)).list()).toMatchObject({ next: null });
    const mixed = await open(byArgument({ ...pages, [SHORTS]: [oldPage(minutes(A, C, D))] })).list();
    expect([ids(mixed), mixed.next, isComplete(mixed.progress)]).toEqual([[A, B], null, false]);
  });

  it('of a page that leads to itself is no end', async () => {
    const { next } = open(byArgument({ '2': [continuedPage([newToken('2')])] }));
    const { next: following, progress } = await next('2');
    expect([following, isComplete(progress)]).toEqual([null, false]);
  });
});

describe('kinds without a list of Shorts', () => {
  it('are unknown, and not guessed, for whatever can be a Short', async () => {
    const lengths = ['40', '1860'].map((lengthSeconds, index) => playlistVideo([A, B][index] ?? '', { lengthSeconds }));
    const { list } = open(byArgument({ [UPLOADS]: [oldPage(lengths)] }));
    const { uploads, settled } = await list();
    expect(uploads.map(({ kind }) => kind)).toEqual([null, 'video']);
    expect(settled).toBe(true);
  });
});

describe('a list that was read before', () => {
  const feed = (id: string) => ({
    ...FEED,
    body: `<feed><entry><yt:videoId>${id}</yt:videoId><published>2026-05-21T11:22:05Z</published></entry></feed>`,
  });
  const minute = (id: string, fields: object = {}) => playlistVideo(id, { lengthSeconds: '60', ...fields });
  const first = async (...items: unknown[]): Promise<KnownUploads> => {
    const pages = { [UPLOADS]: [oldPage(items)], [SHORTS]: [oldPage([minute(A)])] };
    return { ...(await open(byArgument(pages), feed(A)).list()), complete: true };
  };
  const facts = ({ uploads }: ReadUploads) =>
    uploads.map(({ videoId, kind, publishedAt }) => [videoId, kind, publishedAt]);
  const AT = '2026-05-21T11:22:05Z';

  it('costs one request while it has nothing new, and keeps its kinds and dates', async () => {
    const known = await first(minute(A), minute(B));
    const { list, requested } = open(byArgument({ [UPLOADS]: [oldPage([minute(A), minute(B)])] }), feed(C));
    expect(facts(await list(2, known))).toEqual([
      [A, 'short', AT],
      [B, 'video', null],
    ]);
    expect(requested).toEqual([UPLOADS]);
  });

  it('asks for the Shorts and the feed when there is a new upload', async () => {
    const known = await first(minute(A), minute(B));
    const pages = {
      [UPLOADS]: [oldPage([minute(C), minute(A), minute(B)])],
      [SHORTS]: [oldPage([minute(C), minute(A)])],
    };
    const { list, requested } = open(byArgument(pages), feed(C));
    expect(facts(await list(2, known))).toEqual([
      [C, 'short', AT],
      [A, 'short', AT],
      [B, 'video', null],
    ]);
    expect(requested).toEqual([UPLOADS, SHORTS]);
  });

  it('asks for the Shorts when the list is shorter than before, and takes the rest from them', async () => {
    const pages = {
      [UPLOADS]: [oldPage([minute(A), minute(B)], stating(9))],
      [SHORTS]: [oldPage([minute(A), minute(B), minute(C)])],
    };
    const read = open(byArgument(pages));
    const known = { ...(await read.list(3)), complete: true };
    expect(ids(await read.list(3, known))).toEqual([A, B, C]);
    expect(read.requested.filter((argument) => argument === SHORTS)).toHaveLength(2);
    await read.list(2, known);
    expect(read.requested.filter((argument) => argument === SHORTS)).toHaveLength(2);
  });

  it('asks for them when a stream has ended, whose kind is another then', async () => {
    const known = await first(
      minute(B, { badges: [{ metadataBadgeRenderer: { style: 'BADGE_STYLE_TYPE_LIVE_NOW' } }] }),
    );
    const live = open(byArgument({ [UPLOADS]: [oldPage([minute(B)])], [SHORTS]: [oldPage([minute(A)])] }));
    expect(facts(await live.list(1, known))).toEqual([[B, 'video', null]]);
    expect(live.requested).toEqual([UPLOADS, SHORTS]);
  });

  it('asks for the Shorts again when they could not be read, and not because there are none', async () => {
    const uploads = { [UPLOADS]: [oldPage([minute(A)])] };
    const unread = { ...(await open(byArgument({ ...uploads, [SHORTS]: [failed(500)] })).list()), complete: true };
    const again = open(byArgument({ ...uploads, [SHORTS]: [oldPage([minute(A)])] }));
    expect(facts(await again.list(1, unread))).toEqual([[A, 'short', null]]);
    const missing = { ...(await open(byArgument(uploads)).list()), complete: true };
    const { list, requested } = open(byArgument(uploads));
    expect(facts(await list(1, missing))).toEqual([[A, null, null]]);
    expect(requested).toEqual([UPLOADS]);
  });
});

describe('a failed request', () => {
  it.each([
    [404, 'json', 'channel_not_found', 'channel_not_found'],
    // A version of WEB that is no longer served gets 400 for everything.
    [400, 'json', 'upstream_failure', 'upstream_failure'],
    [404, 'html', 'upstream_failure', 'upstream_failure'],
    [400, 'html', 'upstream_failure', 'upstream_failure'],
  ] as const)('%d with %s is %s for a name and %s for an ID', async (status, media, ofName, ofId) => {
    const { resolve, read } = open(() => failed(status, media));
    await expect(resolve()).rejects.toMatchObject({ code: ofName });
    await expect(read()).rejects.toMatchObject({ code: ofId });
  });

  it('believes a 400 for an ID when the version of WEB is served', async () => {
    const { read, requested } = open((argument) => failed(argument === CHANNEL_ID ? 400 : 404));
    await expect(read()).rejects.toMatchObject({ code: 'channel_not_found' });
    expect(requested).toEqual([CHANNEL_ID, 'https://www.youtube.com/@youtube']);
  });

  it.each<[FailedResponse, object]>([
    [
      { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 7 },
      { code: 'upstream_blocked', retryAfterSeconds: 7, cause: { about: 'refused' } },
    ],
    [{ kind: 'timeout' }, { code: 'upstream_timeout', cause: { about: 'unreached' } }],
    [
      { kind: 'busy', retryAfterSeconds: 40 },
      { code: 'upstream_busy', retryAfterSeconds: 40, cause: { about: 'busy' } },
    ],
    [
      { kind: 'network', cause: new Error('reset') },
      { code: 'upstream_failure', cause: { about: 'unreached' } },
    ],
    [
      { kind: 'http-error', status: 500, media: 'html' },
      { code: 'upstream_failure', cause: { about: 'unreached' } },
    ],
  ])('a 400 for an ID whose check has the response %j is %j', async (check, error) => {
    const { read } = open((argument) => (argument === CHANNEL_ID ? failed(400) : new Failed(check)));
    await expect(read()).rejects.toMatchObject(error);
  });
});

describe('a channel that is found under another name or ID', () => {
  const NEW_ID = `UC${'d'.repeat(22)}`;
  const redirect = redirectedUrl('https://www.youtube.com/@new-name');
  const found = { endpoint: { browseEndpoint: { browseId: NEW_ID } } };

  /** Responds to each request in turn; the last response repeats. */
  function inTurn(...responses: unknown[]): () => unknown {
    let requests = 0;
    return () => responses[Math.min(requests++, responses.length - 1)];
  }

  it('is resolved over at most three redirects', async () => {
    await expect(open(inTurn(redirect, redirect, redirect, found)).resolve()).resolves.toBe(NEW_ID);
    const endless = open(() => redirect);
    await expect(endless.resolve()).rejects.toMatchObject({ code: 'upstream_failure' });
    expect(endless.requested).toHaveLength(4);
  });

  it('is not found when the target is another site, which is never contacted', async () => {
    const elsewhere = open(() => redirectedUrl('https://example.org/@elsewhere'));
    await expect(elsewhere.resolve()).rejects.toMatchObject({ code: 'channel_not_found' });
    expect(elsewhere.requested).toEqual(['https://www.youtube.com/@somebody']);
  });

  it('is read under its new ID', async () => {
    await expect(open(inTurn(movedPage(NEW_ID), channelPage({ externalId: NEW_ID }))).read()).resolves.toMatchObject({
      id: NEW_ID,
    });
    const endless = open(() => movedPage(NEW_ID));
    await expect(endless.read()).rejects.toMatchObject({ code: 'upstream_failure' });
    expect(endless.requested).toHaveLength(4);
  });

  it('is read under the handle that its page redirects to', async () => {
    const page = {
      onResponseReceivedEndpoints: [{ navigateAction: { endpoint: { urlEndpoint: { url: '/@new-name' } } } }],
    };
    const { read, requested } = open(inTurn(page, found, channelPage({ externalId: NEW_ID })));
    await expect(read()).resolves.toMatchObject({ id: NEW_ID });
    expect(requested).toEqual([CHANNEL_ID, 'https://www.youtube.com/@new-name', NEW_ID]);
  });

  it('has the uploads of its new ID', async () => {
    const pages: Record<string, unknown> = {
      [CHANNEL_ID]: movedPage(NEW_ID),
      [NEW_ID]: channelPage({ externalId: NEW_ID }),
      [`VLUU${NEW_ID.slice(2)}`]: oldPage([playlistVideo(A)]),
    };
    const { list } = open((argument) => pages[argument] ?? alertPage('The playlist does not exist.'));
    expect(ids(await list())).toEqual([A]);
  });

  it.each([
    ['A whisky', 'A whisky'],
    [undefined, '@a.whisky'],
  ])('has the handle of its uploads, and the name %s of its age gate', async (channelTitle, name) => {
    const gate = { channelAgeGateRenderer: { mainText: {}, channelTitle } };
    const content = { sectionListRenderer: { contents: [gate] } };
    const page = { contents: { twoColumnBrowseResultsRenderer: { tabs: [{ tabRenderer: { content } }] } } };
    const link = { browseEndpoint: { browseId: CHANNEL_ID, canonicalBaseUrl: '/@a.whisky' } };
    const { read } = open((argument) => (argument === CHANNEL_ID ? page : oldPage([playlistVideo(A, { link })])));
    await expect(read()).resolves.toEqual({ id: CHANNEL_ID, name, handle: '@a.whisky' });
  });

  it('has uploads without dates when the feed is not found', async () => {
    const { list } = open(() => oldPage([playlistVideo(A)]), { kind: 'http-error', status: 404, media: 'html' });
    expect((await list()).uploads).toMatchObject([{ videoId: A, publishedAt: null }]);
  });
});
