import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import {
  CHANNEL_ID,
  channelPage,
  movedPage,
  oldPage,
  playlistVideo,
  redirectedUrl,
} from '../../../../test/pages/youtube-pages.js';
import { newScope, nextEgress } from '../../../../test/youtube/egresses.js';
import { RetryBudget } from '../egress/attempt.js';
import { Experiment } from '../egress/experiment.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { RequestQueue } from '../egress/request-queue.js';
import type { FailedResponse } from '../egress/upstream-response.js';
import type { InnertubeQuery } from '../innertube/clients.js';
import { InnertubeClient, parsed } from '../innertube/innertube-client.js';
import { UpstreamMetrics } from '../upstream-metrics.js';
import { ChannelReader, ControlChannels } from './channel-reader.js';

Logger.overrideLogger(false);

const A = 'aaaaaaaaaaa';

class Failed {
  constructor(readonly response: FailedResponse) {}
}

const failed = (status: number, media: 'json' | 'html' = 'json') => new Failed({ kind: 'http-error', status, media });

/**
 * The channels over a platform that answers each request with a page, or with a failure.
 *
 * @param respond the answer to a request for a token, or for a `browseId` or `url`
 */
function open(respond: (argument: string) => unknown, retries = 0) {
  const requested: string[] = [];
  const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ payload }: InnertubeQuery, parse: (response: unknown) => unknown) => {
      const argument = String(payload['continuation'] ?? payload['browseId'] ?? payload['url']);
      requested.push(argument);
      const response = respond(argument);
      return Promise.resolve(response instanceof Failed ? response.response : parsed(() => parse(response)));
    },
  });
  const channels = new ChannelReader(innertube);
  return {
    resolve: () => channels.resolve({ kind: 'handle', handle: 'somebody' }, scope(retries)),
    read: () => channels.read(CHANNEL_ID, scope(retries)),
    requested,
  };
}

const scope = (retries = 0) => ({ ...newScope({ deadlineAtMs: Infinity }), budget: new RetryBudget(retries) });

describe('an incomplete page of a channel or a name', () => {
  it('is asked for again within the retries', async () => {
    let pages = 0;
    const { read, resolve } = open((argument) => (argument === CHANNEL_ID && ++pages > 1 ? channelPage() : {}), 1);
    await expect(read()).resolves.toMatchObject({ id: CHANNEL_ID });
    await expect(resolve()).rejects.toMatchObject({ code: 'upstream_failure' });
  });
});

describe('a failed request', () => {
  it.each([
    [404, 'json', 'channel_not_found', 'channel_not_found'],
    // An invalid ID: `InnertubeClient` has found out that it is not the version of WEB.
    [400, 'json', 'upstream_failure', 'channel_not_found'],
    [404, 'html', 'upstream_failure', 'upstream_failure'],
    [400, 'html', 'upstream_failure', 'upstream_failure'],
  ] as const)('%d with %s is %s for a name and %s for an ID', async (status, media, ofName, ofId) => {
    const { resolve, read } = open(() => failed(status, media));
    await expect(resolve()).rejects.toMatchObject({ code: ofName });
    await expect(read()).rejects.toMatchObject({ code: ofId });
  });

  it.each<[FailedResponse, object]>([
    [
      { kind: 'blocked', reason: 'too-many-requests', retryAfterSeconds: 7 },
      { code: 'upstream_blocked', retryAfterSeconds: 7 },
    ],
    [{ kind: 'timeout' }, { code: 'upstream_timeout' }],
    [
      { kind: 'busy', retryAfterSeconds: 40 },
      { code: 'upstream_busy', retryAfterSeconds: 40 },
    ],
    [{ kind: 'network', cause: new Error('reset') }, { code: 'upstream_failure' }],
    [{ kind: 'http-error', status: 500, media: 'html' }, { code: 'upstream_failure' }],
  ])('%j is %j', async (response, error) => {
    await expect(open(() => new Failed(response)).read()).rejects.toMatchObject(error);
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
});

const REFUSED: FailedResponse = { kind: 'blocked', reason: 'forbidden', retryAfterSeconds: null };
const TIMEOUT: FailedResponse = { kind: 'timeout' };
const BROKEN: FailedResponse = { kind: 'http-error', status: 500, media: 'json' };

/** The control of lists, whose requests get these responses in turn; null for the page of a channel. */
function newChannelControl(...responses: (FailedResponse | null)[]) {
  const asked: unknown[] = [];
  const innertube = Object.assign(Object.create(InnertubeClient.prototype) as InnertubeClient, {
    query: ({ payload }: InnertubeQuery, parse: (page: unknown) => unknown, { attempt }: RequestScope) => {
      attempt.sentAtMs = performance.now();
      const response = responses[asked.push(payload['browseId']) - 1] ?? null;
      return Promise.resolve(response ?? parsed(() => parse(channelPage())));
    },
  });
  const channel = new ControlChannels(innertube);
  const metrics = new UpstreamMetrics(new Registry(), new RequestQueue(1));
  const experiment = new Experiment({ channel, video: channel }, metrics);
  const egress = nextEgress(undefined, 'channel');
  const settle = () => {
    const doubt = { kind: 'list', client: null, sinceMs: performance.now() } as const;
    return experiment.settle(doubt, 'WEB', newScope({}, egress));
  };
  return { settle, probe: () => experiment.probe(egress, 'list'), asked, line: egress.uses.channel.line };
}

describe('the control of lists', () => {
  it.each<[string, (FailedResponse | null)[], string, number]>([
    ['the channel is at fault when one that exists is served', [null], 'served', 1],
    ['one of the two that are asked may have ended', [REFUSED, null], 'served', 2],
    ['the address is refused when both are', [REFUSED, REFUSED], 'address-refused', 2],
    ['nothing is known when the control fails', [BROKEN], 'unknown', 1],
    ['nothing is known when the second one is not reached', [REFUSED, TIMEOUT], 'unknown', 2],
  ])('finds out that %s', async (_, responses, finding, requests) => {
    const { settle, asked, line } = newChannelControl(...responses);
    expect(await settle()).toBe(finding);
    expect(new Set(asked).size).toBe(requests);
    expect(line.refusedKind).toBe(finding === 'address-refused' ? 'list' : null);
  });

  it('is one for all who doubt at a time', async () => {
    const { settle, asked } = newChannelControl();
    expect(await Promise.all([settle(), settle(), settle()])).toEqual(['served', 'served', 'served']);
    expect(asked).toHaveLength(1);
  });

  it.each([
    [null, 'served'],
    [REFUSED, 'refused'],
    [TIMEOUT, 'unreached'],
    [BROKEN, 'unknown'],
  ])('at the end of a pause is one request: with %j it is %s', async (response, end) => {
    const { probe, asked } = newChannelControl(response);
    expect([await probe(), asked.length]).toEqual([end, 1]);
  });
});
