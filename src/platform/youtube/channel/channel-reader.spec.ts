import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import {
  alertPage,
  CHANNEL_ID,
  channelPage,
  continuedPage,
  lockup,
  movedPage,
  newToken,
  oldPage,
  oldToken,
  playlistPage,
  playlistVideo,
  redirectedUrl,
} from '../../../../test/pages/youtube-pages.js';
import { newScope } from '../../../../test/youtube/egresses.js';
import { Environment } from '../../../config/environment.js';
import { ContinuationRejectedError, type UploadsListPage } from '../../video-platform.js';
import { FairLimiter } from '../egress/fair-limiter.js';
import type { FailedResponse, UpstreamResponse } from '../egress/upstream-response.js';
import type { InnertubeCall } from '../innertube/clients.js';
import { InnertubeClient, parsed } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ChannelReader } from './channel-reader.js';
import { PlaylistReader } from './playlist-reader.js';

Logger.overrideLogger(false);

const FEED: UpstreamResponse = { kind: 'ok', media: 'other', body: '<feed></feed>' };
const [A, B] = ['aaaaaaaaaaa', 'bbbbbbbbbbb'];
/** 400 and 404 for a request that is invalid. */
const refused = (status: number) => ({ kind: 'http-error', status, media: 'json' });

/**
 * The channels over a platform that answers each request for a list with a page.
 *
 * @param respond the page of a token, or of a `browseId` or `url`; a number is the status of a JSON error
 */
function open(respond: (argument: string) => unknown, feed: UpstreamResponse = FEED) {
  const requested: string[] = [];
  const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ payload }: InnertubeCall, parse: (response: unknown) => unknown) => {
      const argument = String(payload['continuation'] ?? payload['browseId'] ?? payload['url']);
      requested.push(argument);
      const response = respond(argument);
      return Promise.resolve(typeof response === 'number' ? refused(response) : parsed(() => parse(response)));
    },
    fetchText: () => Promise.resolve(feed),
  });
  const channels = readerOf(innertube);
  return {
    list: (token?: string) => channels.uploadsPage(CHANNEL_ID, token, scope()),
    resolve: () => channels.resolve({ kind: 'handle', handle: 'somebody' }, scope()),
    read: () => channels.read(CHANNEL_ID, scope()),
    requested,
  };
}

function readerOf(innertube: InnertubeClient): ChannelReader {
  const metrics = new UpstreamMetrics(new Registry(), new FairLimiter(1), new Environment());
  return new ChannelReader(innertube, new PlaylistReader(innertube, metrics));
}

const scope = () => newScope({ deadlineAtMs: Infinity });

const UPLOADS = `VLUU${CHANNEL_ID.slice(2)}`;
const SHORTS = `VLUUSH${CHANNEL_ID.slice(2)}`;
const ids = ({ uploads }: UploadsListPage) => uploads.map(({ videoId }) => videoId);

describe('a page of all uploads', () => {
  it('has kinds as far as the newest Shorts and the lengths show them', async () => {
    const minute = (id: string) => playlistVideo(id, { lengthSeconds: '60' });
    const hour = playlistVideo('hour_______', { lengthSeconds: '3600' });
    const pages: Record<string, unknown> = {
      [UPLOADS]: oldPage([minute('n1_________'), minute(A), minute('n3_________'), oldToken('2')]),
      [SHORTS]: oldPage([minute(A), oldToken('more')]),
      '2': continuedPage([minute(B), hour]),
    };
    const { list, requested } = open((argument) => pages[argument]);
    const first = await list();
    expect(first.uploads.map(({ kind }) => kind)).toEqual(['video', 'short', null]);
    expect(first.next).toBe('2:2');
    const second = await list('2:2');
    expect(second.uploads.map(({ kind }) => kind)).toEqual([null, 'video']);
    expect(second.next).toBeNull();
    // One page of Shorts beside the first page, and nothing beside a later one.
    expect(requested.sort()).toEqual(['2', UPLOADS, SHORTS].sort());
  });

  it.each([400, 404])(
    'is to be read again from the first when its token gets %d and the channel exists',
    async (status) => {
      const { list } = open((argument) => (argument === 'old' ? status : 404));
      await expect(list('2:old')).rejects.toThrow(ContinuationRejectedError);
    },
  );

  it('is to be read again from the first when its playlist does not exist any more', async () => {
    const { list } = open((argument) => (argument === 'old' ? alertPage('The playlist does not exist.') : 404));
    await expect(list('2:old')).rejects.toThrow(ContinuationRejectedError);
  });

  it.each([
    ['500', 500],
    ['a page without a list', { responseContext: {} }],
    ['a page with unreadable entries', continuedPage([{ newShape: {} }])],
  ])('that is %s is a failure, not an end', async (_, response) => {
    await expect(open(() => response).list('2:2')).rejects.toMatchObject({ code: 'upstream_failure' });
  });

  it('of a channel without the playlist is empty, and not found when its page says so', async () => {
    const without = (page: unknown) =>
      open((id) => (id === CHANNEL_ID ? page : alertPage('The playlist does not exist.')));
    await expect(without(channelPage()).list()).resolves.toEqual({ uploads: [], next: null });
    const terminated = without(alertPage('This account has been terminated.'));
    await expect(terminated.list()).rejects.toMatchObject({ code: 'channel_not_found' });
  });

  it('leads through every upload once, in order, for any number of pages of any length and shape', async () => {
    const lists = fc.array(fc.record({ length: fc.nat(5), old: fc.boolean() }), { minLength: 1, maxLength: 40 });
    const continuations = fc.infiniteStream(fc.boolean());
    await fc.assert(
      fc.asyncProperty(lists, continuations, async (pages, shapes) => {
        let count = 0;
        const written = pages.map(({ length, old }, index) => {
          // An empty first page without a notice cannot be told from one that is unreadable.
          const videoIds = Array.from({ length: index === 0 ? length + 1 : length }, () =>
            String((count += 1)).padStart(11, 'v'),
          );
          const more = index + 1 < pages.length ? [(old ? oldToken : newToken)(`token ${index + 1}`)] : [];
          const items = [...videoIds.map((id) => (old ? playlistVideo(id) : lockup(id))), ...more];
          if (index === 0) return old ? oldPage(items) : playlistPage(items);
          return continuedPage(items, shapes.next().value ? 'append' : 'reload');
        });
        const { list } = open((argument) => {
          if (argument === UPLOADS) return written[0];
          return argument === SHORTS
            ? alertPage('The playlist does not exist.')
            : written[Number(argument.slice('token '.length))];
        });
        const seen: string[] = [];
        let token: string | undefined;
        do {
          const page: UploadsListPage = await list(token);
          seen.push(...ids(page));
          token = page.next ?? undefined;
        } while (token !== undefined);
        expect(seen).toEqual(Array.from({ length: count }, (_, index) => String(index + 1).padStart(11, 'v')));
      }),
      { numRuns: 50 },
    );
  });
});

/**
 * The channels over a platform that responds to every request with an error.
 *
 * @param ofUrl the response to the URL of a channel, or its status, if it is another one
 */
function failing(status: number, media: 'json' | 'html', ofUrl: number | FailedResponse = status) {
  const requested: string[] = [];
  const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ kind }: { kind: string }) => {
      requested.push(kind);
      const response = kind === 'resolve' ? ofUrl : status;
      return Promise.resolve(typeof response === 'number' ? { kind: 'http-error', status: response, media } : response);
    },
  });
  const channels = readerOf(innertube);
  return {
    resolve: () => channels.resolve({ kind: 'handle', handle: 'somebody' }, scope()),
    read: () => channels.read(CHANNEL_ID, scope()),
    requested,
  };
}

describe('a failed request', () => {
  it.each([
    [404, 'json', 'channel_not_found', 'channel_not_found'],
    // A version of WEB that is no longer served gets 400 for everything.
    [400, 'json', 'upstream_failure', 'upstream_failure'],
    [404, 'html', 'upstream_failure', 'upstream_failure'],
    [400, 'html', 'upstream_failure', 'upstream_failure'],
    [500, 'json', 'upstream_failure', 'upstream_failure'],
  ] as const)('%d with %s is %s for a name and %s for an ID', async (status, media, ofName, ofId) => {
    const { resolve, read } = failing(status, media);
    await expect(resolve()).rejects.toMatchObject({ code: ofName });
    await expect(read()).rejects.toMatchObject({ code: ofId });
  });

  it('believes a 400 for an ID when the version of WEB is served', async () => {
    const { read, requested } = failing(400, 'json', 404);
    await expect(read()).rejects.toMatchObject({ code: 'channel_not_found' });
    expect(requested).toEqual(['channel', 'resolve']);
  });

  const failed: [FailedResponse, object][] = [
    [
      { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 7 },
      { code: 'upstream_blocked', retryAfterSeconds: 7, cause: { verdict: 'refused' } },
    ],
    [{ kind: 'timeout' }, { code: 'upstream_timeout', cause: { verdict: 'nothing' } }],
    [
      { kind: 'network', cause: new Error('reset') },
      { code: 'upstream_failure', cause: { verdict: 'unreached' } },
    ],
    [
      { kind: 'http-error', status: 500, media: 'html' },
      { code: 'upstream_failure', cause: { verdict: 'nothing' } },
    ],
  ];
  it.each(failed)('a 400 for an ID whose check has the response %j is %j', async (check, error) => {
    await expect(failing(400, 'json', check).read()).rejects.toMatchObject(error);
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
